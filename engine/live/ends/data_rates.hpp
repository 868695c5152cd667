// How fast this machine makes and checks generated data: what a source and a sink need of a core.
#pragma once

#include <cstdint>

#include "base/expected.hpp"

namespace daqloom::live {

/// Of one thread, from and to memory beyond its caches (bytes per second).
struct DataRates {
    double generated = 0;  ///< MFPs, as the generator source writes them
    double checked = 0;    ///< MEPs, as the checking sink reads them
};

/// For MFPs of `packing` fragments of `fragment_bytes` on average (Poisson). Fails where no
/// generator has those.
base::expected<DataRates> measure_data_rates(std::uint32_t packing, std::uint32_t fragment_bytes);

}  // namespace daqloom::live

// Rates at which the cores of this machine make, copy and check generated data, as needed by a
// source, a unit and a sink.
#pragma once

#include <cstdint>

#include "base/expected.hpp"
#include "base/fields.hpp"

namespace daqloom::live {

/// Rates of each thread, while all threads work, from and to memory beyond their caches (bytes per
/// second).
struct DataRates {
    DAQLOOM_FIELDS(DataRates,
                   (double, generated_bytes_per_s,
                    "MFPs generated, as the generator source writes them."),
                   (double, copied_bytes_per_s,
                    "MFPs copied, as units copy them to each other's memory."),
                   (double, checked_bytes_per_s, "MEPs checked, as the checking sink reads them."))
};

/// `threads` of 1 to 1024. For MFPs of `packing` fragments of `fragment_bytes` on average
/// (Poisson). Fails where the generator does not support those.
base::expected<DataRates> measure_data_rates(std::uint32_t threads, std::uint32_t packing,
                                             std::uint32_t fragment_bytes);

}  // namespace daqloom::live

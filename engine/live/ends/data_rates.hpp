// Rates at which the cores of this machine make, copy and check generated data, as needed by a
// source, a unit and a sink.
#pragma once

#include <cstdint>

#include "base/expected.hpp"
#include "base/fields.hpp"

namespace daqloom::live {

/// Rates of each thread while all threads work, in bytes per second, on memory beyond the caches.
struct DataRates {
    DAQLOOM_FIELDS(DataRates,
                   (double, generated_bytes_per_s,
                    "MFPs generated, as the generator source writes them."),
                   (double, copied_bytes_per_s,
                    "MFPs copied, as units copy them to each other's memory."),
                   (double, checked_bytes_per_s, "MEPs checked, as the checking sink reads them."))
};

/// `threads`: 1 to 1024. The MFPs have `packing` fragments of `fragment_bytes` on average
/// (Poisson). Fails if the generator does not support this.
base::expected<DataRates> measure_data_rates(std::uint32_t threads, std::uint32_t packing,
                                             std::uint32_t fragment_bytes);

}  // namespace daqloom::live

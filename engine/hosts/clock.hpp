// The clock of a host.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/units.hpp"

namespace daqloom::hosts {

/// A host's clock, with offset and drift.
struct Clock {
    base::Time offset;
    double rate = 1;  ///< seconds of the clock per second

    [[nodiscard]] base::Time local(base::Time now) const {
        return offset + base::Time{static_cast<std::int64_t>(
                            std::llround(static_cast<double>(now.ps) * rate))};
    }
    /// First instant of simulated time at which the clock shows `local` or more.
    [[nodiscard]] base::Time global(base::Time local) const {
        return base::Time{static_cast<std::int64_t>(
                   std::ceil(static_cast<double>((local - offset).ps) / rate))} +
               base::Time{1};
    }
};

}  // namespace daqloom::hosts

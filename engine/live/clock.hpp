// The time of a live run.
#pragma once

#include <ctime>

#include "base/units.hpp"

namespace daqloom::live {

/// CLOCK_MONOTONIC: the same for all processes of a machine, never set back.
inline base::Time now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return base::seconds(time.tv_sec) + base::nanoseconds(time.tv_nsec);
}

}  // namespace daqloom::live

// The time of a live run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/units.hpp"

namespace daqloom::live {

/// CLOCK_MONOTONIC: the same for all processes of a machine, never set back.
inline base::Time now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return base::seconds(time.tv_sec) + base::nanoseconds(time.tv_nsec);
}

/// CPU time of this process, all threads.
inline base::Time processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return base::seconds(time.tv_sec) + base::nanoseconds(time.tv_nsec);
}

/// Timeout in ms, rounded up, with which ::poll returns at `until`; -1 for never(). It is an hour
/// at most, so callers poll in a loop.
inline int poll_timeout(base::Time until) {
    if (until == base::Time::never()) {
        return -1;
    }
    constexpr std::int64_t kHour = 3'600'000;
    const std::int64_t ms = (until - now()).ps / base::milliseconds(1).ps + 1;
    return static_cast<int>(std::clamp<std::int64_t>(ms, 0, kHour));
}

}  // namespace daqloom::live

// Time slots with the same numbers in all units.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/units.hpp"
#include "live/memory/clock.hpp"

namespace daqloom::live {

/// Slots are counted from 1970, so that units agree on their numbers without messages, within the
/// accuracy of their clocks. Lengths are whole nanoseconds.
class SlotClock {
  public:
    /// `since_1970_ns`: the time since 1970 at `now`.
    SlotClock(base::Time length, base::Time now, std::int64_t since_1970_ns)
        : length_(base::nanoseconds(std::max<std::int64_t>(length.ps / 1'000, 1))) {
        const std::int64_t length_ns = length_.ps / 1'000;
        first_ = static_cast<std::uint64_t>(since_1970_ns / length_ns);
        begin_ = now - base::nanoseconds(since_1970_ns % length_ns);
    }
    static SlotClock of_this_machine(base::Time length) {
        timespec real{};
        ::clock_gettime(CLOCK_REALTIME, &real);
        return {length, now(), real.tv_sec * 1'000'000'000 + real.tv_nsec};
    }

    /// The slot that contains `now`. Precondition: `now` is not before the construction.
    [[nodiscard]] std::uint64_t slot_at(base::Time now) const {
        return first_ + static_cast<std::uint64_t>((now - begin_).ps / length_.ps);
    }
    [[nodiscard]] base::Time begin_of(std::uint64_t slot) const {
        return begin_ + length_ * static_cast<std::int64_t>(slot - first_);
    }

  private:
    base::Time length_;
    std::uint64_t first_ = 0;
    base::Time begin_;
};

}  // namespace daqloom::live

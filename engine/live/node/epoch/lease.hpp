// The lease of a unit: the MEPs that it may answer, and until when, without a new message from the
// run control.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "base/units.hpp"

namespace daqloom::live {

/// Permits MEPs before a number, until a time. A unit that has lost contact with the run control
/// begins no more MEPs once its lease is over; the run control gives the MEPs leased to such a unit
/// to no other unit. A node without a run control keeps the initial lease, which has no limit.
class Lease {
  public:
    /// Callable from any thread. A `mep_end` of 0 permits no MEP.
    void set(std::uint64_t mep_end, base::Time until, std::uint64_t beat = 0) {
        beat_.store(beat, std::memory_order_relaxed);
        mep_end_.store(mep_end, std::memory_order_relaxed);
        until_ps_.store(until.ps, std::memory_order_relaxed);
    }
    [[nodiscard]] base::Time until() const {
        return base::Time{until_ps_.load(std::memory_order_relaxed)};
    }
    /// The last beat of the run control.
    [[nodiscard]] std::uint64_t beat() const { return beat_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_over(base::Time now) const { return now >= until(); }
    /// The first MEP that may not be answered now.
    [[nodiscard]] std::uint64_t mep_end(base::Time now) const { return mep_end(now, until()); }
    /// First MEP that may not be answered under a lease that ends `until` another time.
    [[nodiscard]] std::uint64_t mep_end(base::Time now, base::Time until) const {
        return now >= until ? 0 : mep_end_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<std::uint64_t> mep_end_ = std::numeric_limits<std::uint64_t>::max();
    std::atomic<std::int64_t> until_ps_ = base::Time::never().ps;
    std::atomic<std::uint64_t> beat_ = 0;
};

}  // namespace daqloom::live

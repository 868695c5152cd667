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
    void set(std::uint64_t mep_end, base::Time until) {
        mep_end_.store(mep_end, std::memory_order_relaxed);
        until_ps_.store(until.ps, std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_over(base::Time now) const {
        return now.ps >= until_ps_.load(std::memory_order_relaxed);
    }
    /// The first MEP that may not be answered now.
    [[nodiscard]] std::uint64_t mep_end(base::Time now) const {
        return is_over(now) ? 0 : mep_end_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<std::uint64_t> mep_end_ = std::numeric_limits<std::uint64_t>::max();
    std::atomic<std::int64_t> until_ps_ = base::Time::never().ps;
};

}  // namespace daqloom::live

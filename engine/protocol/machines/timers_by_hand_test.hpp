// For tests: virtual time, and actions that are due at given times.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/units.hpp"

namespace daqloom::protocol {

/// Timers in order of time; timers of the same time in the order of their setting.
class TimersByHand {
  public:
    using Action = std::function<void()>;

    void at(base::Time due, Action action) { timers_.push({due, next_++, std::move(action)}); }
    void after(base::Time delay, Action action) { at(now_ + delay, std::move(action)); }
    [[nodiscard]] base::Time now() const { return now_; }

    /// Runs actions until none is left, or until `enough()`.
    template <class Enough>
    void run(Enough enough) {
        while (!timers_.empty() && !enough()) {
            const Timer timer = timers_.top();
            timers_.pop();
            now_ = timer.due;
            timer.action();
        }
    }

  private:
    struct Timer {
        base::Time due;
        std::uint64_t number;
        Action action;
        bool operator<(const Timer& other) const {
            return std::tie(due, number) > std::tie(other.due, other.number);
        }
    };

    base::Time now_ = base::Time::zero();
    std::uint64_t next_ = 0;
    std::priority_queue<Timer> timers_;
};

}  // namespace daqloom::protocol

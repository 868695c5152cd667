// A record of when events came to a unit's event manager, for traces of arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace daqloom::live {

/// The first `most` arrivals since it was last taken, in memory that is there beforehand. One
/// thread adds, another begins and takes.
class ArrivalRecord {
  public:
    explicit ArrivalRecord(std::size_t most) : most_(most) { times_.reserve(most); }

    [[nodiscard]] bool is_on() const { return most_ > 0; }

    /// Of an epoch. Arrivals of an earlier one that were not taken keep theirs.
    void begin(base::Time at) {
        const std::lock_guard lock(mutex_);
        if (times_.empty()) {
            begin_ = at;
        }
    }

    void add(base::Time at) {
        const std::lock_guard lock(mutex_);
        if (times_.size() < most_) {
            times_.push_back(at);
        } else {
            ++beyond_;
        }
    }

    struct Told {
        base::Time begin = base::Time::zero();  ///< of the epoch of the first
        std::vector<base::Time> times;
        std::uint64_t beyond = 0;  ///< came when it was full
    };
    /// What was added since the last time, in its order.
    Told take() {
        std::vector<base::Time> fresh;
        fresh.reserve(most_);
        const std::lock_guard lock(mutex_);
        std::swap(fresh, times_);
        return {begin_, std::move(fresh), std::exchange(beyond_, 0)};
    }

  private:
    std::mutex mutex_;
    std::size_t most_;
    base::Time begin_ = base::Time::zero();
    std::vector<base::Time> times_;
    std::uint64_t beyond_ = 0;
};

}  // namespace daqloom::live

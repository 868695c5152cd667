// Arrival times of events at a unit's event manager, for traces of arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace daqloom::live {

/// Records the first `most` arrivals since the last `take`, in memory allocated beforehand. One
/// thread adds, another begins and takes.
class ArrivalRecord {
  public:
    explicit ArrivalRecord(std::size_t most) : most_(most) { times_.reserve(most); }

    [[nodiscard]] bool is_on() const { return most_ > 0; }

    /// Begins an epoch. The begin of an earlier epoch stays until that epoch's arrivals are taken.
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

    struct Arrivals {
        base::Time begin = base::Time::zero();  ///< start of the epoch of the first arrival
        std::vector<base::Time> times;
        std::uint64_t beyond = 0;  ///< arrivals that found the record full
    };
    /// Arrivals since the last call, in order.
    Arrivals take() {
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

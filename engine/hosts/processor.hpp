// The processor of a node, which does one task after the other, and cores shared by processors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/units.hpp"

namespace daqloom::hosts {

/// Cores shared by several processors, such as those of the units on one machine. If there are no
/// cores, each processor has a core of its own.
class SharedCores {
  public:
    explicit SharedCores(std::size_t cores) : free_at_(cores) {}

    /// Reserves a core for a task due at `due`; returns when the task begins.
    base::Time reserve(base::Time due, base::Time cost) {
        if (free_at_.empty()) {
            return due;
        }
        base::Time& core = core_for(due);
        const base::Time begin = std::max(due, core);
        core = begin + cost;
        return begin;
    }

  private:
    /// Core for a task due at `due`: among idle cores, the one idle for the shortest time, which
    /// leaves the others for earlier tasks; if none is idle, the core that is free first.
    base::Time& core_for(base::Time due) {
        const auto is_worse = [&](base::Time a, base::Time b) {
            return a <= due && b <= due ? a < b : a > b;
        };
        return *std::ranges::max_element(free_at_, is_worse);
    }

    std::vector<base::Time> free_at_;
};

struct Processor {
    base::Time message_cost;
    double slowness = 1;  ///< factor of all processor times
    base::Time free_at;
    base::Time stopped_until;

    /// Time for messages and for their data at `rate`; at a rate of 0, data take no time.
    [[nodiscard]] base::Time work(int messages, base::Bytes data, base::BitRate rate) const {
        constexpr double most_s = 1e6;
        base::Time cost = message_cost * messages;
        if (rate.bps > 0) {
            cost += base::Time::from_seconds(
                std::min(most_s, 8 * static_cast<double>(data) / static_cast<double>(rate.bps)));
        }
        return slowness == 1
                   ? cost
                   : base::Time::from_seconds(std::min(most_s, cost.seconds() * slowness));
    }

    /// Adds work, which begins now or when the processor is free; returns the end of the work.
    base::Time occupy(base::Time cost, base::Time now, SharedCores& cores) {
        if (stopped_until == base::Time::never()) {
            return stopped_until;
        }
        free_at = cores.reserve(std::max({free_at, now, stopped_until}), cost) + cost;
        return free_at;
    }
};

}  // namespace daqloom::hosts

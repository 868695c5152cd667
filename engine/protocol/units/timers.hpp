// Timers of a unit: the unit sets them in its world, which calls the unit when they are due.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

struct UnitTimer {
    enum class What : std::uint8_t {
        response,   ///< readout unit: respond to the request for `event`
        processed,  ///< builder unit: the processing of `event` is over
        storage,    ///< builder unit: the storage unit of `event` has not acknowledged it in time
        phase,      ///< shift: the next phase begins
        window,     ///< shift: a time window begins, by the node's clock
        idle,       ///< shift: a phase without a partner is over
        go,         ///< shift: a builder unit that sets the pace may let the next one write
    };
    What what = What::response;
    EventId event{};
    BuilderIndex builder{};     ///< response: the builder unit of the request
    base::Bytes offset = 0;     ///< response: place in the builder unit's memory
    std::uint32_t attempt = 0;  ///< storage: number of the attempt, from 0

    /// Shift: whether the timer begins a phase or window, which a node may do late by some jitter.
    [[nodiscard]] constexpr bool begins_phase() const {
        return what == What::phase || what == What::window;
    }
};

/// Pending timers, for worlds that poll. The earliest comes first; equal times come in the order of
/// their setting.
class Timers {
  public:
    /// No call of `set` allocates while fewer than `most` timers are pending.
    explicit Timers(std::size_t most = 0) { pending_.reserve(most); }

    void set(base::Time at, UnitTimer timer) {
        pending_.push_back({at, next_++, timer});
        std::ranges::push_heap(pending_, std::greater{});
    }
    /// The earliest time; `never`: none is pending.
    [[nodiscard]] base::Time next() const {
        return pending_.empty() ? base::Time::never() : pending_.front().at;
    }
    /// Takes a timer that is due, or none.
    std::optional<UnitTimer> take(base::Time now) {
        if (now < next() || pending_.empty()) {
            return std::nullopt;
        }
        std::ranges::pop_heap(pending_, std::greater{});
        const UnitTimer timer = pending_.back().timer;
        pending_.pop_back();
        return timer;
    }

  private:
    struct Entry {
        base::Time at;
        std::uint64_t number;
        UnitTimer timer;
        friend bool operator>(const Entry& a, const Entry& b) {
            return std::tie(a.at, a.number) > std::tie(b.at, b.number);
        }
    };

    std::vector<Entry> pending_;  ///< a heap: the earliest one is in front
    std::uint64_t next_ = 0;
};

}  // namespace daqloom::protocol

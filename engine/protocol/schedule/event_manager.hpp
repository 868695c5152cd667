// The event manager: assigns every event to a builder unit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/ring.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// The policy that selects a builder unit for the next event, among those with a free slot.
enum class Assignment {
    round_robin,  ///< the next one after the last assigned
    least_busy,   ///< the one with the fewest events; of several, the next in turn
    random,       ///< each equally likely
};

struct EventManagerConfig {
    std::uint32_t builders = 1;
    std::uint32_t concurrent_events = 32;  ///< per builder
    Assignment assignment = Assignment::round_robin;
};

/// The outputs of an event manager, implemented by its driver. `assign` must not call the event
/// manager back.
template <class Out>
concept EventManagerOut =
    requires(Out& out, EventId event, BuilderIndex builder) { out.assign(event, builder); };

/// Further outputs at the end of an epoch.
template <class Out>
concept EventManagerClosingOut = requires(Out& out, BuilderIndex builder, std::uint64_t events) {
    /// Send the builder its total number of events.
    out.last_assignment(builder, events);
};

/// Invariants: no builder unit has more than `concurrent_events` events; events are assigned in the
/// order of arrival; an event waits in the backlog only while every builder unit is full, while the
/// lease does not reach the event, or while the epoch is closing.
class EventManager {
  public:
    struct Counters {
        std::uint64_t events = 0;
        std::uint64_t assigned = 0;
        std::uint64_t done = 0;
        std::uint64_t unexpected = 0;  ///< reports ignored: no such builder, or it has no event
    };

    static base::expected<EventManager> make(EventManagerConfig config, base::RandomStream random);

    template <EventManagerOut Out>
    void on_event(EventId event, Out& out) {
        ++counters_.events;
        if (free_slots_ == 0 || !backlog_.empty() || !may_assign(event)) {
            backlog_.push(event);
            return;
        }
        assign(event, choose(), out);
    }

    template <EventManagerOut Out>
    void on_builder_done(BuilderIndex builder, Out& out) {
        if (!in_flight_.contains(builder) || in_flight_[builder] == 0) {
            ++counters_.unexpected;
            return;
        }
        ++counters_.done;
        --in_flight_[builder];
        ++free_slots_;
        if (may_assign_next() && free_slots_ == 1) {  // usual case: only one slot is free
            assign_next(builder, out);
        } else {
            assign_backlog(out);
        }
    }

    /// Forbids the assignment of events from `event_end` on, until the next call; they wait in the
    /// backlog. Before the first call there is no limit.
    template <EventManagerOut Out>
    void on_lease(std::uint64_t event_end, Out& out) {
        leased_until_ = event_end;
        assign_backlog(out);
    }

    /// Ends the epoch's assignments: unassigned events stay in the backlog.
    template <EventManagerClosingOut Out>
    void on_close(Out& out) {
        if (std::exchange(is_closing_, true)) {
            return;
        }
        for (const BuilderIndex builder : assigned_.indices()) {
            out.last_assignment(builder, assigned_[builder]);
        }
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    [[nodiscard]] std::uint64_t backlog() const { return backlog_.size(); }
    [[nodiscard]] std::uint32_t in_flight(BuilderIndex builder) const {
        return in_flight_[builder];
    }

  private:
    EventManager(EventManagerConfig config, base::RandomStream random);

    [[nodiscard]] bool may_assign(EventId event) const {
        return !is_closing_ && static_cast<std::uint64_t>(event) < leased_until_;
    }

    [[nodiscard]] bool may_assign_next() const {
        return !backlog_.empty() && may_assign(backlog_.front());
    }

    template <EventManagerOut Out>
    void assign_next(BuilderIndex builder, Out& out) {
        const EventId event = backlog_.front();
        backlog_.pop();
        assign(event, builder, out);
    }

    template <EventManagerOut Out>
    void assign_backlog(Out& out) {
        while (free_slots_ > 0 && may_assign_next()) {
            assign_next(choose(), out);
        }
    }

    template <EventManagerOut Out>
    void assign(EventId event, BuilderIndex builder, Out& out) {
        ++in_flight_[builder];
        --free_slots_;
        next_in_turn_ = after(builder);
        ++counters_.assigned;
        ++assigned_[builder];
        out.assign(event, builder);
    }

    /// Precondition, also of the three functions below: a builder unit has a free slot.
    BuilderIndex choose() {
        switch (config_.assignment) {
            case Assignment::least_busy:
                return choose_least_busy();
            case Assignment::random:
                return choose_random();
            case Assignment::round_robin:
                break;
        }
        return choose_round_robin();
    }
    [[nodiscard]] BuilderIndex choose_round_robin() const;
    [[nodiscard]] BuilderIndex choose_least_busy() const;
    BuilderIndex choose_random();

    [[nodiscard]] BuilderIndex after(BuilderIndex builder) const {
        return in_flight_.contains(builder + 1) ? builder + 1 : BuilderIndex();
    }

    EventManagerConfig config_;
    base::RandomStream random_;
    base::Table<BuilderIndex, std::uint32_t> in_flight_;
    base::Table<BuilderIndex, std::uint64_t> assigned_;  ///< events assigned since the start
    std::uint64_t free_slots_;                           ///< over all builders
    BuilderIndex next_in_turn_;
    base::Ring<EventId> backlog_;
    std::uint64_t leased_until_ = std::numeric_limits<std::uint64_t>::max();  ///< see on_lease
    bool is_closing_ = false;
    Counters counters_;
};

}  // namespace daqloom::protocol

// Pull event building on a node: its readout unit, its builder unit or both, and on the node of
// readout unit 0 the event manager.
//
// Events arrive at the event manager, which assigns them to builder units. A builder unit requests
// a fragment from each readout unit and names its place in the builder unit's memory. The readout
// unit writes the fragment there after its response time, once its source has delivered it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/machines/pull_builder.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/units/request_book.hpp"
#include "protocol/units/timers.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

struct PullUnitConfig {
    PullRules rules = {};
    ReadoutIndex readout = ReadoutIndex::none();  ///< none: no readout unit on this node
    BuilderIndex builder = BuilderIndex::none();
    std::uint32_t readouts = 1;  ///< count in the epoch
    std::uint32_t builders = 1;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
    std::uint64_t seed = 1;
    base::Time begin = base::Time::zero();  ///< start of the epoch, from which arrivals count
    bool reserves = true;  ///< memory for all requests of an epoch: none is allocated later
};

/// The world of a unit. Its members must not call the unit back.
template <class World>
concept PullWorld = requires(World& world, EventId event, ReadoutIndex readout,
                             BuilderIndex builder, std::uint32_t slot, base::Bytes offset,
                             std::uint32_t count, base::Time at, const UnitMessage& message) {
    world.send(readout, message);
    world.send(builder, message);
    // ---- readout unit
    /// Write the delivered bytes of the event's fragment there, notify the builder unit, and call
    /// on_write_done(event, builder).
    world.write(event, builder, offset);
    /// The `count` oldest fragments are not needed any more.
    world.give_back(count);
    // ---- event manager
    /// The next event has arrived at this time; it may be assigned later.
    world.arrived(at);
    world.assigned(event, builder);
    // ---- builder unit; slots are below `concurrent_events`
    world.collect(event, slot);
    { world.place(slot, readout) } -> std::convertible_to<base::Bytes>;
    world.deliver(event, slot);  ///< then call on_consumed
};

/// Invariants: those of its machines; a missing fragment is requested once and answered once, with
/// no bytes if the epoch ends without it. Invalid input is counted and otherwise ignored.
class PullUnit {
  public:
    using Config = PullUnitConfig;
    /// Whether the writes under way are limited, so that a completion may start another one.
    static constexpr bool limits_writes = false;
    /// Wait, while an epoch closes, for fragments that were requested and have not arrived.
    static constexpr base::Time patience = base::seconds(1);

    static base::expected<PullUnit> make(PullUnitConfig config);

    // ---- inputs

    /// Handles what is due by now: arrivals, responses, processed events, the end of a wait. False:
    /// nothing was due.
    template <PullWorld World>
    bool on_time(base::Time now, World& world) {
        if (now < due_at_) {
            return false;
        }
        give_up_waiting(now, world);
        // Arrivals after a long absence are limited per call, so that other due work does not wait.
        for (std::uint32_t left = most_arrivals; next_arrival_ <= now && left > 0; --left) {
            ManagerOut<World> out{world};
            world.arrived(now);
            manager_->events.on_event(EventId{arrived_++}, out);
            next_arrival_ = after_begin(manager_->arrivals.next());
        }
        run_due(now, world);
        return true;
    }
    /// Skips arrivals that were events of earlier epochs.
    void skip_arrivals(std::uint64_t events) {
        for (; manager_ && events > 0; --events) {
            next_arrival_ = after_begin(manager_->arrivals.next());
        }
        update_due();
    }

    /// The source has delivered the fragment of the next event.
    template <PullWorld World>
    void on_data(base::Time now, World& world) {
        const EventId event{book_->taken()};
        if (const auto request = book_->on_taken()) {
            serve(event, *request, now, world);
        }
    }

    /// Message from the node of these units (or none). False: that node may not send it.
    template <PullWorld World>
    bool on_message(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message,
                    base::Time now, World& world) {
        using Kind = UnitMessage::Kind;
        const bool is_of_manager = readout == ReadoutIndex() && builder_;
        const bool is_of_builder = requests_.contains(builder);
        const EventId event{message.number};
        if (message.kind == Kind::request && is_of_builder) {
            return message.values.size() == 1 &&
                   on_request(event, {.builder = builder, .offset = message.values[0]}, now, world);
        }
        if (message.kind == Kind::assign && is_of_manager) {
            BuilderOut<World> out{*this, now, world};
            builder_->on_assigned(event, out);
            if (const auto slot = builder_->slot_of(event); slot != SlotTable::none) {
                world.collect(event, slot);
            }
        } else if (message.kind == Kind::last_assignment && is_of_manager) {
            BuilderOut<World> out{*this, now, world};
            builder_->on_last_assignment(message.number, out);
        } else if (message.kind == Kind::done && manager_ && builder != BuilderIndex::none()) {
            ManagerOut<World> out{world};
            manager_->events.on_builder_done(builder, out);
        } else if (message.kind == Kind::last_answer && is_of_builder) {
            return on_last_request(builder, message.number);
        } else {
            return false;
        }
        return true;
    }

    /// The readout unit has written its fragment of the event in this slot; 0 bytes: it has none.
    template <PullWorld World>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, base::Time now,
                     World& world) {
        BuilderOut<World> out{*this, now, world};
        if (bytes > 0) {
            builder_->on_fragment(event, readout, bytes, out);
        } else {
            builder_->on_missing(event, readout, out);
        }
    }

    template <PullWorld World>
    void on_write_done(EventId event, BuilderIndex builder, World& world) {
        settle(event, builder, world);
    }

    /// The consumer has processed the event.
    template <PullWorld World>
    void on_consumed(EventId event, base::Time now, World& world) {
        const auto slot = builder_->slot_of(event);
        if (slot != SlotTable::none && processed_at_[slot] > now) {
            set_timer(processed_at_[slot], {UnitTimer::What::processed, event});
            return;
        }
        BuilderOut<World> out{*this, now, world};
        builder_->on_processed(event, out);
    }

    template <PullWorld World>
    void on_lease(std::uint64_t event_end, World& world) {
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->events.on_lease(event_end, out);
        }
    }

    /// The epoch is being closed, and these units are lost. Called again when more are lost.
    template <PullWorld World>
    void on_close(std::span<const ReadoutIndex> readouts, std::span<const BuilderIndex> builders,
                  base::Time now, World& world) {
        is_closing_ = true;
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->events.on_close(out);
            next_arrival_ = base::Time::never();
        }
        if (book_) {
            for (const BuilderIndex builder : builders) {
                requesters_[builder].is_lost = any_is_lost_ = true;
            }
            give_up_at_ = has_given_up_ ? base::Time::never() : now + patience;
        }
        update_due();
        if (builder_) {
            BuilderOut<World> out{*this, now, world};
            builder_->on_close(readouts, out);
            if (std::ranges::count(readouts, ReadoutIndex()) > 0) {
                builder_->on_event_manager_lost(out);
            }
        }
    }

    // ---- observers

    /// The next time at which on_time has work.
    [[nodiscard]] base::Time next_timer() const { return due_at_; }
    /// After on_close: requests of live builder units are written, and fragments of assigned events
    /// that live readout units hold are built.
    [[nodiscard]] bool is_drained() const;
    /// One more than the last event that this node has written a fragment of, or was assigned.
    [[nodiscard]] std::uint64_t next_event() const {
        return std::max(next_event_, builder_ ? builder_->next_event() : 0);
    }
    /// Whether the unit waits only for arrivals, its own source, a response time or its consumer.
    [[nodiscard]] bool waits_for_its_own() const;
    /// Whether on_data may be called: the unit has not given up waiting for its source.
    [[nodiscard]] bool wants_data() const { return !has_given_up_; }
    /// Requests for fragments that the source has not delivered.
    [[nodiscard]] std::uint32_t waits_for_data() const { return book_ ? book_->waiting() : 0; }
    /// Fragments taken from the source.
    [[nodiscard]] std::uint64_t taken() const { return book_->taken(); }
    /// Fragments written, including empty ones that the source had not delivered.
    [[nodiscard]] std::uint64_t written() const { return written_; }
    /// Fragments requested here and not written.
    [[nodiscard]] std::uint64_t unanswered() const { return unanswered_; }
    [[nodiscard]] std::uint64_t unexpected_messages() const;

    /// The event manager; none: it is on another node.
    [[nodiscard]] const EventManager* manager() const {
        return manager_ ? &manager_->events : nullptr;
    }
    [[nodiscard]] const PullBuilder* builder() const { return builder_ ? &*builder_ : nullptr; }
    /// Fragments that a readout unit may take from its source before it gives any back: as many as
    /// events are collected, of which the oldest may complete last, as many again for the next, and
    /// `some` whose writes are not yet reported.
    [[nodiscard]] std::uint32_t window() const { return 2 * collected() + some; }

  private:
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    /// Arrivals handled in one call of on_time.
    static constexpr std::uint32_t most_arrivals = 1'024;
    static constexpr std::uint32_t some = 64;

    /// Requests of a builder unit.
    struct Requests {
        std::uint32_t made = 0;
        std::uint32_t unanswered = 0;
    };
    struct Requester {
        std::uint64_t last_request = unknown;  ///< requests that it makes in all
        bool is_lost = false;
    };

    struct Manager {
        EventManager events;
        Arrivals arrivals;
    };

    template <class World>
    struct ManagerOut {
        World& world;

        void assign(EventId event, BuilderIndex builder) {
            world.assigned(event, builder);
            world.send(builder, UnitMessage{UnitMessage::Kind::assign, 0, number(event), {}});
        }
        void last_assignment(BuilderIndex builder, std::uint64_t events) {
            world.send(builder, UnitMessage{UnitMessage::Kind::last_assignment, 0, events, {}});
        }
    };

    template <class World>
    struct BuilderOut {
        PullUnit& unit;
        base::Time now;
        World& world;

        void request(EventId event, ReadoutIndex readout) {
            const auto slot = unit.builder_->slot_of(event);
            world.collect(event, slot);
            const base::Bytes offset = world.place(slot, readout);
            world.send(readout,
                       UnitMessage{UnitMessage::Kind::request, 0, number(event), {&offset, 1}});
        }
        void built(EventId event) {
            const auto slot = unit.builder_->slot_of(event);
            base::Time processed = now;
            for (const base::DelayDistribution& stage : unit.config_.rules.processing) {
                processed += stage.draw(*unit.processing_random_);
            }
            unit.processed_at_[slot] = processed;
            world.deliver(event, slot);
        }
        void incomplete(EventId event) { built(event); }
        void done(EventId event) {
            world.send(ReadoutIndex(), UnitMessage{UnitMessage::Kind::done, 0, number(event), {}});
        }
        void last_request(ReadoutIndex readout, std::uint64_t requests) {
            world.send(readout, UnitMessage{UnitMessage::Kind::last_answer, 0, requests, {}});
        }
    };

    explicit PullUnit(PullUnitConfig config)
        : responds_at_once_(config.rules.response.kind == base::DelayDistribution::Kind::fixed &&
                            config.rules.response.mean == base::Time::zero()),
          response_(config.rules.response),
          config_(std::move(config)) {}

    static std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }
    [[nodiscard]] bool is_lost(BuilderIndex builder) const {
        return any_is_lost_ && requesters_[builder].is_lost;
    }
    /// Events that are collected at a time.
    [[nodiscard]] std::uint32_t collected() const {
        return config_.builders * config_.rules.concurrent_events;
    }

    [[nodiscard]] base::Time after_begin(base::Time time) const {
        return time == base::Time::never() ? time : config_.begin + time;
    }

    template <PullWorld World>
    bool on_request(EventId event, const RequestBook::Request& request, base::Time now,
                    World& world) {
        if (is_lost(request.builder)) {
            return true;
        }
        const RequestBook::Answer answer = book_->request(number(event), request);
        if (answer == RequestBook::Answer::refused) {
            return false;
        }
        Requests& requests = requests_[request.builder];
        ++requests.made;
        ++requests.unanswered;
        ++unanswered_;
        if (answer == RequestBook::Answer::now || has_given_up_) {
            serve(event, request, now, world);
        }
        return true;
    }

    bool on_last_request(BuilderIndex builder, std::uint64_t requests);

    template <PullWorld World>
    void serve(EventId event, const RequestBook::Request& request, base::Time now, World& world) {
        const base::Time at = responds_at_once_ ? now : now + response_.draw(*response_random_);
        const UnitTimer timer{UnitTimer::What::response, event, request.builder, request.offset};
        if (at <= now && now < due_at_) {
            respond(timer, world);
            return;
        }
        set_timer(at, timer);
        run_due(now, world);
    }

    template <PullWorld World>
    void give_up_waiting(base::Time now, World& world) {
        if (now < give_up_at_) {
            return;
        }
        give_up_at_ = base::Time::never();
        has_given_up_ = true;
        book_->each_waiting([&](std::uint64_t event, const RequestBook::Request& request) {
            serve(EventId{event}, request, now, world);
        });
    }

    void set_timer(base::Time at, const UnitTimer& timer) {
        timers_.set(at, timer);
        due_at_ = std::min(due_at_, at);
    }
    void update_due() { due_at_ = std::min({timers_.next(), next_arrival_, give_up_at_}); }

    template <PullWorld World>
    void run_due(base::Time now, World& world) {
        if (now < due_at_) {
            return;
        }
        for (auto timer = timers_.take(now); timer; timer = timers_.take(now)) {
            if (timer->what == UnitTimer::What::response) {
                respond(*timer, world);
            } else {
                BuilderOut<World> out{*this, now, world};
                builder_->on_processed(timer->event, out);
            }
        }
        update_due();
    }

    template <PullWorld World>
    void respond(const UnitTimer& timer, World& world) {
        if (!is_lost(timer.builder)) {
            next_event_ = std::max(next_event_, number(timer.event) + 1);
            ++written_;
            world.write(timer.event, timer.builder, timer.offset);
        } else {
            settle(timer.event, timer.builder, world);
        }
    }

    /// Settles a request: it is answered, or its builder unit is lost.
    template <PullWorld World>
    void settle(EventId event, BuilderIndex builder, World& world) {
        --requests_[builder].unanswered;
        --unanswered_;
        if (const std::uint32_t count = book_->on_written(number(event)); count > 0) {
            world.give_back(count);
        }
    }

    // ---- data that each request touches, in two cache lines: a simulation of 600 readout units
    // keeps all of them in its cache
    alignas(64) base::Table<BuilderIndex, Requests> requests_;  ///< by each builder unit
    std::uint64_t next_event_ = 0;
    std::uint64_t unanswered_ = 0;
    std::uint64_t written_ = 0;
    base::Time due_at_ = base::Time::never();  ///< the earliest of timers, arrival, end of waiting
    bool responds_at_once_ = false;
    bool any_is_lost_ = false;
    bool has_given_up_ = false;  ///< waiting for fragments that the source has not delivered
    alignas(64) std::optional<RequestBook> book_;

    base::DelayDistribution response_;
    std::unique_ptr<base::RandomStream> response_random_;  ///< none: no readout unit
    Timers timers_;                                        ///< responses and processed events
    base::Time next_arrival_ = base::Time::never();
    base::Time give_up_at_ = base::Time::never();
    PullUnitConfig config_;
    bool is_closing_ = false;

    std::unique_ptr<Manager> manager_;
    std::uint64_t arrived_ = 0;

    std::optional<PullBuilder> builder_;
    std::unique_ptr<base::RandomStream> processing_random_;
    std::vector<base::Time> processed_at_;  ///< by slot

    base::Table<BuilderIndex, Requester> requesters_;
};

}  // namespace daqloom::protocol

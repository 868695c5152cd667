// Units of protocols in which builder units request fragments (pull, DAQPIPE): the readout unit,
// the builder unit or both of a node, and with readout unit 0 the event manager.
//
// The event manager assigns an event to a builder unit. The builder unit requests a fragment from
// each readout unit and names a place in its memory. The readout unit writes the fragment there
// when its source has delivered it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/machines/requesting_builder.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/request_book.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

template <class Rules>
struct RequestedUnitConfig {
    Rules rules = {};
    ReadoutIndex readout = ReadoutIndex::none();  ///< none: no readout unit on this node
    BuilderIndex builder = BuilderIndex::none();
    std::uint32_t readouts = 1;  ///< count in the epoch
    std::uint32_t builders = 1;
    base::Bytes largest_fragment = base::Bytes{1} << 20;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
    std::uint64_t seed = 1;
    base::Time begin = base::Time::zero();  ///< start of the epoch, from which arrivals count
    bool reserves = true;  ///< memory for all requests of an epoch: none is allocated later
};

/// Words for messages: the protocol, and its limit on events that a builder unit collects.
struct RequestedWords {
    const char* protocol;
    const char* slots;
    const char* slots_of_events;  ///< before "of so many bytes"
};

/// The world of a unit (simulator, live node or test). Its members must not call the unit back.
template <class World>
concept RequestedWorld =
    requires(World& world, EventId event, ReadoutIndex readout, BuilderIndex builder,
             std::uint32_t slot, base::Bytes offset, base::Bytes bytes, std::uint32_t count,
             base::Time at, const UnitMessage& message) {
        world.send(readout, message);
        world.send(builder, message);
        // ---- readout unit
        /// Bytes of the event's requested fragment; 0: the source has delivered none.
        { world.held(event) } -> std::convertible_to<base::Bytes>;
        /// Write the fragment to `offset` in the builder unit's memory, notify the builder unit,
        /// and call on_write_done(event, builder).
        world.write(event, builder, offset, bytes);
        /// The `count` oldest fragments are no longer needed.
        world.give_back(count);
        // ---- event manager
        /// An event of `PullRules::arrivals` has arrived at time `at`; it may be assigned later.
        world.arrived(at);
        world.assigned(event, builder);
        // ---- builder unit; slots are below the number of events collected at a time
        world.collect(event, slot);
        { world.place(slot, readout) } -> std::convertible_to<base::Bytes>;
        world.deliver(event, slot);  ///< then call on_consumed
    };

/// Common part of the units of these protocols (CRTP base). The derived class `Unit` has
/// - `limits_writes`: writes under way are limited, so that a completion may start another write;
/// - `has_arrivals`: events arrive by PullRules::arrivals; false: with the data of readout unit 0;
/// - `takes_empty_fragments`: an empty fragment counts as received; false: as missing;
/// - `slots(rules)`: events that a builder unit collects at a time;
/// - `words`: names for messages;
/// - `margin`: fragments that may be taken from the source beyond those of collected events;
/// - `serve(event, request, now, world)`: the requested fragment has arrived, or never will;
/// - `is_served(builder, waiting)`: the epoch is closing, and this builder unit is lost or has
///   received all that it requests, but for `waiting` fragments;
/// - `lose(builders, world)`: the epoch is closing, and these builder units are lost.
///
/// Invariants: those of its machines; a missing fragment is requested once and answered once, with
/// no bytes if the epoch ends without the fragment. Invalid input is counted and otherwise ignored.
template <class Unit, class Rules, class Builder>
class RequestedUnit {
  public:
    using Config = RequestedUnitConfig<Rules>;
    /// Time to wait, while an epoch closes, for fragments that are requested and have not arrived.
    static constexpr base::Time patience = base::seconds(1);

    // ---- inputs

    /// The source has delivered the fragment of the next event.
    template <RequestedWorld World>
    void on_data(base::Time now, World& world) {
        const EventId event{book_->taken()};
        if (const auto request = book_->on_taken()) {
            self().serve(event, *request, now, world);
        }
        if (!Unit::has_arrivals && manager_) {
            ManagerOut<World> out{world};
            manager_->on_event(event, out);
        }
    }

    /// Handles a message of the node with these units (or none). False: this node may not send it.
    template <RequestedWorld World>
    bool on_message(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message,
                    base::Time now, World& world) {
        using Kind = UnitMessage::Kind;
        const bool is_of_builder = builder.value() < builders_;
        const EventId event{message.number};
        if (message.kind == Kind::request && book_ && is_of_builder) {
            return message.values.size() == 1 &&
                   on_request(event, {.builder = builder, .offset = message.values[0]}, now, world);
        }
        const bool is_of_manager = readout == ReadoutIndex() && builder_;
        BuilderOut<World> out{self(), now, world};
        if (message.kind == Kind::assign && is_of_manager) {
            builder_->on_assigned(event, out);
            self().on_assigned(event, world);
        } else if (message.kind == Kind::last_assignment && is_of_manager) {
            builder_->on_last_assignment(message.number, out);
        } else if (message.kind == Kind::done && manager_ && is_of_builder) {
            ManagerOut<World> assignments{world};
            manager_->on_builder_done(builder, assignments);
        } else if (message.kind == Kind::last_answer && book_ && is_of_builder) {
            return self().on_last_request(builder, message.number);
        } else {
            return false;
        }
        return true;
    }

    /// The readout unit has written its fragment of the event; 0 bytes: it has no such fragment.
    template <RequestedWorld World>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, base::Time now,
                     World& world) {
        BuilderOut<World> out{self(), now, world};
        if constexpr (!Unit::takes_empty_fragments) {
            if (bytes == 0) {
                builder_->on_missing(event, readout, out);
                return;
            }
        }
        builder_->on_fragment(event, readout, bytes, out);
    }

    /// The consumer has processed the event.
    template <RequestedWorld World>
    void on_consumed(EventId event, base::Time now, World& world) {
        BuilderOut<World> out{self(), now, world};
        builder_->on_processed(event, out);
    }

    template <RequestedWorld World>
    void on_lease(std::uint64_t event_end, World& world) {
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->on_lease(event_end, out);
        }
    }

    /// Begins the end of the epoch, with these units lost. Called again when more are lost.
    template <RequestedWorld World>
    void on_close(std::span<const ReadoutIndex> readouts, std::span<const BuilderIndex> builders,
                  base::Time now, World& world) {
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->on_close(out);
        }
        if (book_) {
            give_up_at_ = has_given_up_ ? base::Time::never() : now + patience;
        }
        self().lose(builders, world);
        if (builder_) {
            BuilderOut<World> out{self(), now, world};
            builder_->on_close(readouts, out);
            if (std::ranges::count(readouts, ReadoutIndex()) > 0) {
                builder_->on_event_manager_lost(out);
            }
        }
    }

    // ---- inputs that some protocols ignore

    /// Timed: a time slot begins, by the common clock of all nodes.
    template <RequestedWorld World>
    void on_slot(std::uint64_t /*slot*/, base::Time /*now*/, World& /*world*/) {}
    /// Ends the epoch: incomplete events are delivered or dropped. Precondition: is_drained.
    template <RequestedWorld World>
    void on_end(base::Time /*now*/, World& /*world*/) {}
    /// Skips arrivals that were already events of earlier epochs.
    void skip_arrivals(std::uint64_t /*events*/) {}

    // ---- observers

    /// Whether on_slot has work.
    [[nodiscard]] bool keeps_slots() const { return false; }
    /// Whether on_data may be called: the unit has not given up waiting for its source.
    [[nodiscard]] bool wants_data() const { return !has_given_up_; }
    /// Fragments taken from the source.
    [[nodiscard]] std::uint64_t taken() const { return book_->taken(); }
    [[nodiscard]] std::uint64_t unexpected_messages() const {
        return (manager_ ? manager_->counters().unexpected : 0) +
               (builder_ ? builder_->counters().unexpected_assignments : 0);
    }
    /// The event manager; none: it is on another node.
    [[nodiscard]] const EventManager* manager() const { return manager_.get(); }
    [[nodiscard]] const Builder* builder() const { return builder_ ? &*builder_ : nullptr; }
    /// Limit on fragments taken from the source and not given back: those of the events being
    /// collected (the oldest may complete last), as many for the events after these, and `margin`.
    [[nodiscard]] std::uint32_t window() const { return 2 * collected() + Unit::margin; }

    /// Whether all events that this builder unit may collect at a time are with the consumer.
    [[nodiscard]] bool waits_for_consumer() const {
        return builder_ && builder_->counters().done + slots_ ==
                               builder_->counters().built + builder_->counters().incomplete;
    }

  protected:
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
        Unit& unit;
        base::Time now;
        World& world;

        void request(EventId event, SlotTable::Slot slot, ReadoutIndex readout) {
            world.collect(event, slot);
            const base::Bytes offset = world.place(slot, readout);
            world.send(readout,
                       UnitMessage{UnitMessage::Kind::request, 0, number(event), {&offset, 1}});
        }
        void built(EventId event, SlotTable::Slot slot) {
            unit.on_built(slot, now);
            world.deliver(event, slot);
        }
        void incomplete(EventId event, SlotTable::Slot slot) { built(event, slot); }
        void done(EventId event) {
            world.send(ReadoutIndex(), UnitMessage{UnitMessage::Kind::done, 0, number(event), {}});
        }
        void last_request(ReadoutIndex readout, std::uint64_t requests) {
            world.send(readout, UnitMessage{UnitMessage::Kind::last_answer, 0, requests, {}});
        }
    };

    explicit RequestedUnit(Config config)
        : builders_(config.builders),
          slots_(Unit::slots(config.rules)),
          config_(std::move(config)) {}

    /// Makes the event manager (for readout unit 0) and the book of requests (for a readout unit).
    base::expected<void> prepare(Assignment assignment) {
        if (config_.readout == ReadoutIndex()) {
            DAQLOOM_TRY(manager,
                        EventManager::make({builders_, slots_, assignment},
                                           base::RandomStream(config_.seed, "assignment")));
            manager_ = std::make_unique<EventManager>(std::move(manager));
        }
        if (config_.readout != ReadoutIndex::none()) {
            book_.emplace(collected() + Unit::margin);
            if (config_.reserves) {
                book_->reserve(window());
            }
        }
        return {};
    }

    // ---- hooks of a protocol, which may replace them
    template <class World>
    void on_assigned(EventId /*event*/, World& /*world*/) {}
    void on_built(SlotTable::Slot /*slot*/, base::Time /*now*/) {}
    [[nodiscard]] bool is_lost(BuilderIndex /*builder*/) const { return false; }
    void count_request(BuilderIndex /*builder*/) {}

    /// Ends the wait for missing fragments if it is due by now. False: nothing was due.
    template <class World>
    bool give_up_waiting(base::Time now, World& world) {
        if (now < give_up_at_) {
            return false;
        }
        if (book_->held() >= window() && needs_only_later_fragments()) {
            world.give_back(book_->give_back_all());
            give_up_at_ = now + patience;
            return true;
        }
        give_up_at_ = base::Time::never();
        has_given_up_ = true;
        book_->each_waiting([&](std::uint64_t event, const RequestBook::Request& request) {
            self().serve(EventId{event}, request, now, world);
        });
        return true;
    }
    /// Whether live builder units request fragments of the source that it has not delivered, and no
    /// others. Those taken fill the window in vain if lost builder units did not request them.
    [[nodiscard]] bool needs_only_later_fragments() {
        base::Table<BuilderIndex, std::uint64_t> waiting(builders_);
        book_->each_waiting([&](std::uint64_t /*event*/, const RequestBook::Request& request) {
            ++waiting[request.builder];
        });
        const auto has_all = [&](BuilderIndex builder) { return self().is_served(builder, 0); };
        const auto has_those_taken = [&](BuilderIndex builder) {
            return self().is_served(builder, waiting[builder]);
        };
        return !std::ranges::all_of(waiting.indices(), has_all) &&
               std::ranges::all_of(waiting.indices(), has_those_taken);
    }
    template <class World>
    void give_back_written(EventId event, World& world) {
        if (const std::uint32_t count = book_->on_written(number(event)); count > 0) {
            world.give_back(count);
        }
    }

    static std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }
    /// Events that are collected at a time.
    [[nodiscard]] std::uint32_t collected() const { return builders_ * slots_; }

    // ---- data that each request touches come first, so that the data of 600 simulated readout
    // units fit into the cache
    alignas(64) std::optional<RequestBook> book_;  ///< none: no readout unit
    base::Time give_up_at_ = base::Time::never();
    std::uint32_t builders_;
    std::uint32_t slots_;
    bool has_given_up_ = false;  ///< waiting for fragments that the source has not delivered

    Config config_;
    std::unique_ptr<EventManager> manager_;
    std::optional<Builder> builder_;

  private:
    [[nodiscard]] Unit& self() { return static_cast<Unit&>(*this); }

    template <class World>
    bool on_request(EventId event, const RequestBook::Request& request, base::Time now,
                    World& world) {
        if (self().is_lost(request.builder)) {
            return true;
        }
        const RequestBook::Answer answer = book_->request(number(event), request);
        if (answer == RequestBook::Answer::refused) {
            return false;
        }
        self().count_request(request.builder);
        if (answer == RequestBook::Answer::now || has_given_up_) {
            self().serve(event, request, now, world);
        }
        return true;
    }
};

}  // namespace daqloom::protocol

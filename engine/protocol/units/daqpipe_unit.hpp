// DAQPIPE on a node: its readout unit, its builder unit or both, and on the node of readout unit 0
// the event manager.
//
// The source of readout unit 0 delivers the fragment of an event: then the event manager assigns
// the event to a builder unit. The builder unit requests a fragment from each readout unit and
// names its place in the builder unit's memory. The readout unit writes the fragment there, once
// its source has delivered it.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/machines/daqpipe.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/request_book.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

struct DaqpipeUnitConfig {
    DaqpipeRules rules = {};
    ReadoutIndex readout = ReadoutIndex::none();  ///< none: no readout unit on this node
    BuilderIndex builder = BuilderIndex::none();
    std::uint32_t readouts = 1;  ///< count in the epoch
    std::uint32_t builders = 1;
    base::Bytes largest_fragment = base::Bytes{1} << 20;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
    std::uint64_t seed = 1;
};

/// The world of a unit. Its members must not call the unit back.
template <class World>
concept DaqpipeWorld = requires(
    World& world, EventId event, ReadoutIndex readout, BuilderIndex builder, std::uint32_t slot,
    base::Bytes offset, base::Bytes bytes, std::uint32_t count, const UnitMessage& message) {
    world.send(readout, message);
    world.send(builder, message);
    // ---- readout unit
    /// Bytes of the event's fragment, requested once; 0: the source has delivered none.
    { world.held(event) } -> std::convertible_to<base::Bytes>;
    /// Write the fragment there, notify the builder unit, and call
    /// on_write_done(event, builder).
    world.write(event, builder, offset, bytes);
    /// The `count` oldest fragments are not needed any more.
    world.give_back(count);
    // ---- event manager
    world.assigned(event, builder);
    // ---- builder unit; slots are below `credits`
    world.collect(event, slot);
    { world.place(slot, readout) } -> std::convertible_to<base::Bytes>;
    world.deliver(event, slot);  ///< then call on_consumed
};

/// Invariants: those of its machines; a missing fragment is requested once and answered once, with
/// no bytes if the epoch ends without it. Invalid input is counted and otherwise ignored.
class DaqpipeUnit {
  public:
    using Config = DaqpipeUnitConfig;
    /// Whether the writes under way are limited, so that a completion may start another one.
    static constexpr bool limits_writes = true;
    /// Wait, while an epoch closes, for fragments that were requested and have not arrived.
    static constexpr base::Time patience = base::seconds(1);

    static base::expected<DaqpipeUnit> make(const DaqpipeUnitConfig& config);

    // ---- inputs

    /// Ends a wait for data that is due by now. False: nothing was due.
    template <DaqpipeWorld World>
    bool on_time(base::Time now, World& world) {
        if (now < give_up_at_) {
            return false;
        }
        give_up_at_ = base::Time::never();
        has_given_up_ = true;
        book_->each_waiting([&](std::uint64_t event, const RequestBook::Request& request) {
            serve(EventId{event}, request, world);
        });
        return true;
    }

    /// Timed: a time slot begins, by a clock that all nodes have in common.
    template <DaqpipeWorld World>
    void on_slot(std::uint64_t slot, World& world) {
        if (config_.rules.is_push && readout_) {
            ReadoutOut<World> out{world};
            readout_->on_slot(slot, out);
        } else if (!config_.rules.is_push && builder_) {
            BuilderOut<World> out{*this, world};
            builder_->on_slot(slot, out);
        }
    }

    /// The source has delivered the fragment of the next event.
    template <DaqpipeWorld World>
    void on_data(base::Time /*now*/, World& world) {
        const EventId event{book_->taken()};
        if (const auto request = book_->on_taken()) {
            serve(event, *request, world);
        }
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->on_event(event, out);
        }
    }

    /// Message from the node of these units (or none). False: that node may not send it.
    template <DaqpipeWorld World>
    bool on_message(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message,
                    base::Time /*now*/, World& world) {
        using Kind = UnitMessage::Kind;
        const bool is_of_manager = readout == ReadoutIndex() && builder_;
        const bool is_of_builder = builder.value() < config_.builders;
        if (message.kind == Kind::request && readout_ && is_of_builder) {
            return on_request(builder, message, world);
        }
        if (message.kind == Kind::assign && is_of_manager) {
            BuilderOut<World> out{*this, world};
            builder_->on_assigned(EventId{message.number}, out);
        } else if (message.kind == Kind::last_assignment && is_of_manager) {
            BuilderOut<World> out{*this, world};
            builder_->on_last_assignment(message.number, out);
        } else if (message.kind == Kind::done && manager_ && is_of_builder) {
            ManagerOut<World> out{world};
            manager_->on_builder_done(builder, out);
        } else if (message.kind == Kind::last_answer && readout_ && is_of_builder) {
            readout_->on_last_request(builder, message.number);
        } else {
            return false;
        }
        return true;
    }

    /// The readout unit has written its fragment of the event; 0 bytes: it has none.
    template <DaqpipeWorld World>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, base::Time /*now*/,
                     World& world) {
        BuilderOut<World> out{*this, world};
        builder_->on_fragment(event, readout, bytes, out);
    }

    template <DaqpipeWorld World>
    void on_write_done(EventId event, BuilderIndex builder, World& world) {
        if (const std::uint32_t count = book_->on_written(number(event)); count > 0) {
            world.give_back(count);
        }
        ReadoutOut<World> out{world};
        readout_->on_write_done(builder, out);
    }

    /// The consumer has processed the event.
    template <DaqpipeWorld World>
    void on_consumed(EventId event, base::Time /*now*/, World& world) {
        BuilderOut<World> out{*this, world};
        builder_->on_processed(event, out);
    }

    template <DaqpipeWorld World>
    void on_lease(std::uint64_t event_end, World& world) {
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->on_lease(event_end, out);
        }
    }

    /// The epoch is being closed, and these units are lost. Called again when more are lost.
    template <DaqpipeWorld World>
    void on_close(std::span<const ReadoutIndex> readouts, std::span<const BuilderIndex> builders,
                  base::Time now, World& world) {
        if (manager_) {
            ManagerOut<World> out{world};
            manager_->on_close(out);
        }
        if (readout_) {
            ReadoutOut<World> out{world};
            readout_->on_close(builders, out);
            give_up_at_ = has_given_up_ ? base::Time::never() : now + patience;
        }
        if (builder_) {
            BuilderOut<World> out{*this, world};
            builder_->on_close(readouts, out);
            if (std::ranges::count(readouts, ReadoutIndex()) > 0) {
                builder_->on_event_manager_lost(out);
            }
        }
    }

    /// The epoch is over: incomplete events are delivered or dropped. Precondition: is_drained.
    template <DaqpipeWorld World>
    void on_end(World& world) {
        if (builder_) {
            BuilderOut<World> out{*this, world};
            builder_->on_end(out);
        }
    }

    // ---- observers

    /// The next time at which on_time has work.
    [[nodiscard]] base::Time next_timer() const { return give_up_at_; }
    /// Whether on_slot has work.
    [[nodiscard]] bool keeps_slots() const {
        return config_.rules.slot > base::Time::zero() &&
               (config_.rules.is_push ? readout_.has_value() : builder_.has_value());
    }
    /// After on_close: requests of live builder units are written, and fragments of assigned events
    /// that live readout units hold have arrived.
    [[nodiscard]] bool is_drained() const {
        return (!readout_ || readout_->is_drained()) && (!builder_ || builder_->is_drained());
    }
    /// One more than the last event that this node has written a fragment of, or was assigned.
    [[nodiscard]] std::uint64_t next_event() const {
        return std::max(readout_ ? readout_->next_event() : 0,
                        builder_ ? builder_->next_event() : 0);
    }
    /// Whether the unit waits only for its own source or consumer.
    [[nodiscard]] bool waits_for_its_own() const;
    /// Whether on_data may be called: the unit has not given up waiting for its source.
    [[nodiscard]] bool wants_data() const { return !has_given_up_; }
    /// Whether the readout unit writes nothing because its source has not delivered.
    [[nodiscard]] bool waits_for_data() const;
    /// Fragments written.
    [[nodiscard]] std::uint64_t written() const {
        return readout_ ? readout_->counters().fragments : 0;
    }
    /// Fragments that are being written.
    [[nodiscard]] std::uint64_t unanswered() const { return readout_ ? readout_->in_flight() : 0; }
    [[nodiscard]] std::uint64_t unexpected_messages() const;

    /// The event manager; none: it is on another node.
    [[nodiscard]] const EventManager* manager() const { return manager_ ? &*manager_ : nullptr; }
    [[nodiscard]] const DaqpipeReadout* readout() const { return readout_ ? &*readout_ : nullptr; }
    [[nodiscard]] const DaqpipeBuilder* builder() const { return builder_ ? &*builder_ : nullptr; }
    /// Fragments that a readout unit may take from its source before it gives any back: as many as
    /// events are collected, of which the oldest may complete last, and as many again for the next.
    [[nodiscard]] std::uint32_t window() const { return 2 * collected(); }
    /// Allocates the memory for the requests of a window.
    void reserve_window() { book_->reserve(window()); }

  private:
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
        DaqpipeUnit& unit;
        World& world;

        void request(EventId event, ReadoutIndex readout, base::Bytes place) {
            const std::uint32_t slot = unit.slot_at(place);
            world.collect(event, slot);
            const base::Bytes offset = world.place(slot, readout);
            world.send(readout,
                       UnitMessage{UnitMessage::Kind::request, 0, number(event), {&offset, 1}});
        }
        void built(EventId event) {
            world.deliver(event, unit.slot_at(unit.builder_->place_of(event, ReadoutIndex())));
        }
        void incomplete(EventId event) { built(event); }
        void done(EventId event) {
            world.send(ReadoutIndex(), UnitMessage{UnitMessage::Kind::done, 0, number(event), {}});
        }
        void last_request(ReadoutIndex readout, std::uint64_t requests) {
            world.send(readout, UnitMessage{UnitMessage::Kind::last_answer, 0, requests, {}});
        }
    };

    template <class World>
    struct ReadoutOut {
        World& world;

        void write(const DaqpipeWrite& write) {
            world.write(write.event, write.builder, write.place, write.bytes);
        }
    };

    explicit DaqpipeUnit(const DaqpipeUnitConfig& config) : config_(config) {}

    static std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }
    /// Events that are collected at a time.
    [[nodiscard]] std::uint32_t collected() const {
        return config_.builders * config_.rules.credits;
    }
    /// The event slot of the builder unit's memory that contains this offset.
    [[nodiscard]] std::uint32_t slot_at(base::Bytes place) const {
        return static_cast<std::uint32_t>(place / (config_.largest_fragment * config_.readouts));
    }

    template <DaqpipeWorld World>
    bool on_request(BuilderIndex builder, const UnitMessage& message, World& world) {
        if (message.values.size() != 1) {
            return false;
        }
        const RequestBook::Request request{.builder = builder, .offset = message.values[0]};
        const RequestBook::Answer answer = book_->request(message.number, request);
        if (answer == RequestBook::Answer::now ||
            (answer == RequestBook::Answer::later && has_given_up_)) {
            serve(EventId{message.number}, request, world);
        }
        return answer != RequestBook::Answer::refused;
    }

    template <DaqpipeWorld World>
    void serve(EventId event, const RequestBook::Request& request, World& world) {
        ReadoutOut<World> out{world};
        readout_->on_request(event, request.builder, request.offset, world.held(event), out);
    }

    DaqpipeUnitConfig config_;
    std::optional<EventManager> manager_;

    std::optional<DaqpipeReadout> readout_;
    std::optional<RequestBook> book_;
    bool has_given_up_ = false;  ///< waiting for fragments that the source has not delivered
    base::Time give_up_at_ = base::Time::never();

    std::optional<DaqpipeBuilder> builder_;
};

}  // namespace daqloom::protocol

// An epoch of pull building or DAQPIPE: connects a unit with transport, source and consumer. An
// event manager assigns events to builder units, which request MFPs into their memory, one place
// for each readout unit.
//
// An event of these protocols is a multi-event packet: the MFPs of all readout units with one
// number.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "live/memory/clock.hpp"
#include "live/node/epoch/event_memory.hpp"
#include "live/node/epoch/slot_clock.hpp"
#include "live/node/epoch/stream_intake.hpp"
#include "live/node/epoch/unit_config.hpp"
#include "live/node/epoch/unit_epoch.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/units/daqpipe_unit.hpp"
#include "protocol/units/pull_unit.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::DaqpipeUnit;
using protocol::EventId;
using protocol::Immediate;
using protocol::PullUnit;
using protocol::ReadoutIndex;
using protocol::UnitMessage;

/// Bytes zeroed in each place. They stay zero if an empty MFP is written, as MFPs begin otherwise.
constexpr std::size_t kMark = 8;
/// Mark in place of a size: the MFP is invalid.
constexpr Bytes kUnusable = -1;

std::uint64_t number(EventId event) { return static_cast<std::uint64_t>(event); }

template <class Unit>
class RequestedEpoch final : public UnitEpoch {
  public:
    RequestedEpoch(const EpochParts& parts, Members members)
        : UnitEpoch(parts, std::move(members), 1) {}

    base::expected<void> make_unit();

    void begin() override {}
    bool step(Time now) override;
    [[nodiscard]] Time next_timer() const override {
        return std::min({unit_->next_timer(), next_processed(),
                         clock_ ? clock_->begin_of(next_slot_) : Time::never()});
    }
    void on_lease(std::uint64_t mep_end) override {
        World world{*this};
        unit_->on_lease(in_epoch(mep_end), world);
    }
    void on_close(std::span<const UnitIndex> lost) override {
        const Lost gone = lose(lost);
        World world{*this};
        closed_at_ = closed_at_ == Time::zero() ? now() : closed_at_;
        unit_->on_close(gone.readouts, gone.builders, now(), world);
    }
    /// Event manager: the backlog, as the time in which as many events arrive. Other units: the
    /// time since the unit last handled an event.
    [[nodiscard]] Time unanswered() const override {
        if constexpr (Unit::has_arrivals) {
            const auto* manager = unit_->manager();
            if (const double rate_hz = config().arrivals.rate_hz;
                manager != nullptr && rate_hz > 0) {
                const auto waiting = static_cast<double>(manager->backlog());
                return Time::from_seconds(waiting / rate_hz);
            }
        }
        return active_at_ == Time::zero() ? Time::zero()
                                          : std::max(closed_at_ - active_at_, Time::zero());
    }
    [[nodiscard]] bool is_drained() const override {
        return unit_->is_drained() && send_queue_.is_empty();
    }
    void end() override;
    [[nodiscard]] std::uint64_t next_mep() const override { return in_run(unit_->next_event()); }

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;

  private:
    struct World;

    bool keep_slots(Time now, World& world);
    void count();
    [[nodiscard]] Counter* cause_of_waiting() const override;
    [[nodiscard]] bool waits_for_its_own() const override { return unit_->waits_for_its_own(); }
    [[nodiscard]] bool waits_for_consumer() const override {
        return unit_->waits_for_consumer() && !unit_->waits_for_data();
    }

    // ---- readout unit
    /// The bytes of an MFP; empty: not yet taken from the source, or larger than any place.
    [[nodiscard]] std::span<const std::byte> mfp(std::uint64_t number) const;
    /// `context` of the write: MFP number · number of builder units + builder unit.
    void write_mfp(std::uint64_t number, BuilderIndex to, Bytes offset);

    // ---- builder unit
    /// Begins to collect the event in this slot.
    void collect(EventId event, std::uint32_t slot);
    [[nodiscard]] std::span<std::byte> place(std::uint32_t slot, ReadoutIndex readout);
    /// The size in the header of the MFP, which another unit has written.
    Bytes read_size(std::uint32_t slot, ReadoutIndex readout);
    void deliver(EventId event, std::uint32_t slot);
    [[nodiscard]] Bytes& size_of(std::uint32_t slot, ReadoutIndex readout) {
        return sizes_[std::size_t{slot} * memory_.readouts + readout.value()];
    }

    std::optional<Unit> unit_;
    std::uint64_t dropped_ = 0;  ///< counted until now
    EventMemory memory_;         ///< layout of every builder unit's memory
    std::optional<StreamIntake> stream_;
    std::vector<std::optional<EventId>> event_in_;  ///< by slot
    std::vector<Bytes> sizes_;        ///< sizes of the MFPs received, by slot and readout unit
    std::optional<SlotClock> clock_;  ///< for a unit that keeps to time slots
    std::uint64_t next_slot_ = 0;
    Time stepped_at_ = Time::zero();
    Time active_at_ = Time::zero();  ///< when the unit last had to do with an answered event
    Time closed_at_ = Time::zero();
};

/// See RequestedWorld.
template <class Unit>
struct RequestedEpoch<Unit>::World {
    RequestedEpoch& epoch;

    void send(ReadoutIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.readouts[to], message);
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.builders[to], message);
    }
    [[nodiscard]] Bytes held(EventId event) const {
        return static_cast<Bytes>(epoch.mfp(number(event)).size());
    }
    void write(EventId event, BuilderIndex to, Bytes offset, Bytes /*bytes*/) {
        epoch.active_at_ = epoch.stepped_at_;
        epoch.write_mfp(number(event), to, offset);
    }
    void give_back(std::uint32_t count) {
        for (; count > 0; --count) {
            epoch.stream_->give_back();
        }
    }
    void arrived(Time at) {
        if (epoch.parts_.arrivals->is_on()) {
            epoch.parts_.arrivals->add(at);
        }
    }
    void assigned(EventId event, BuilderIndex /*builder*/) {
        epoch.active_at_ = epoch.stepped_at_;
        epoch.counters_.answered_to(epoch.in_run(number(event)) + 1);
    }
    void collect(EventId event, std::uint32_t slot) {
        epoch.active_at_ = epoch.stepped_at_;
        epoch.collect(event, slot);
    }
    /// Clears what is left of an earlier event in the place and could be mistaken for an MFP.
    [[nodiscard]] Bytes place(std::uint32_t slot, ReadoutIndex readout) {
        std::memset(epoch.place(slot, readout).data(), 0, kMark);
        return epoch.memory_.mfp_at(slot, readout);
    }
    void deliver(EventId event, std::uint32_t slot) { epoch.deliver(event, slot); }
};

template <class Unit>
base::expected<void> RequestedEpoch<Unit>::make_unit() {
    DAQLOOM_TRY(memory, EventMemory::of<Unit>(config(),
                                              {readouts(), builders(), members_.readouts_in_run}));
    memory_ = memory;
    auto given = requested_unit_config<Unit>(config(), members_, memory_);
    if constexpr (Unit::has_arrivals) {
        // The epoch begins earlier by the unanswered time, so that events of that time are built.
        // Traces restart, because their times count from the begin of an epoch.
        if (config().arrivals.kind != protocol::ArrivalsConfig::Kind::trace) {
            given.begin = given.begin - parts_.unanswered;
        }
        parts_.arrivals->begin(given.begin);
    }
    DAQLOOM_TRY(unit, Unit::make(std::move(given)));
    unit_.emplace(std::move(unit));
    if (self_readout() != ReadoutIndex::none()) {
        stream_.emplace(parts_.streams[0], parts_.first_mep, unit_->window(), counters_);
    }
    if (self_builder() != BuilderIndex::none()) {
        make_mep_output();
        event_in_.resize(memory_.slots);
        sizes_.resize(std::size_t{memory_.slots} * readouts());
    }
    if (unit_->keeps_slots()) {
        clock_ = SlotClock::of_this_machine(config().slot);
    }
    return {};
}

template <class Unit>
bool RequestedEpoch<Unit>::step(Time now) {
    World world{*this};
    stepped_at_ = now;
    bool did = send_queue_.retry();
    did |= keep_slots(now, world);
    did |= unit_->on_time(now, world);
    for (; stream_ && unit_->wants_data() && stream_->has_next(); did = true) {
        if (stream_->take() > memory_.place) {
            counters_.mfps_malformed.add(1);
        }
        unit_->on_data(now, world);
    }
    if (unit_->builder() != nullptr) {
        did |= take_back(
            now, [&](std::uint64_t event) { unit_->on_consumed(EventId{event}, now, world); });
    }
    count();
    return did;
}

/// Enters the current time slot. Slots that were missed completely are skipped.
template <class Unit>
bool RequestedEpoch<Unit>::keep_slots(Time now, World& world) {
    const std::uint64_t slot = clock_ ? clock_->slot_at(now) : 0;
    if (!clock_ || slot < next_slot_) {
        return false;
    }
    next_slot_ = slot + 1;
    unit_->on_slot(slot, now, world);
    return true;
}

template <class Unit>
void RequestedEpoch<Unit>::count() {
    std::uint64_t writes = 0;
    if (const auto* builder = unit_->builder()) {
        const auto& counters = builder->counters();
        writes += counters.unexpected_fragments + counters.from_lost;
        counters_.meps_dropped.add(counters.dropped - std::exchange(dropped_, counters.dropped));
    }
    if (const auto* manager = unit_->manager()) {
        counters_.events_waiting.set(manager->backlog());
    }
    count_refused(unit_->unexpected_messages(), writes);
}

template <class Unit>
Counter* RequestedEpoch<Unit>::cause_of_waiting() const {
    if (!stream_) {
        return nullptr;
    }
    if (unit_->waits_for_data()) {
        return &counters_.waiting_for_source_ps;
    }
    return unit_->unanswered() > 0 || !send_queue_.is_empty() ? &counters_.waiting_for_network_ps
                                                              : &counters_.waiting_for_builder_ps;
}

template <class Unit>
void RequestedEpoch<Unit>::end() {
    World world{*this};
    unit_->on_end(now(), world);
    count();
}

// ---- messages and writes of other units ---------------------------------------------------------

template <class Unit>
void RequestedEpoch<Unit>::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    receive(*unit_, World{*this}, from, bytes);
}

template <class Unit>
void RequestedEpoch<Unit>::on_written(UnitIndex from, std::uint32_t bits) {
    const auto immediate = immediate_of(from, bits);
    if (!immediate) {
        return;
    }
    const std::uint32_t slot = immediate->slot;
    const ReadoutIndex readout(immediate->stream);
    // A write of a lost unit may belong to the slot's previous event.
    if (slot >= event_in_.size() || !event_in_[slot] ||
        send_queue_.is_forgotten(members_.readouts[readout])) {
        refuse_write();
        return;
    }
    counters_.mfps_received.add(1);
    World world{*this};
    unit_->on_fragment(*event_in_[slot], readout, std::max<Bytes>(read_size(slot, readout), 0),
                       now(), world);
}

template <class Unit>
void RequestedEpoch<Unit>::on_write_done(std::uint64_t context) {
    const std::uint64_t event = context / builders();
    counters_.mfps_written.add(1);
    counters_.mfp_bytes_written.add(mfp(event).size());
    World world{*this};
    unit_->on_write_done(EventId{event}, BuilderIndex(context % builders()), world);
}

// ---- MFPs ---------------------------------------------------------------------------------------

template <class Unit>
std::span<const std::byte> RequestedEpoch<Unit>::mfp(std::uint64_t number) const {
    if (number >= stream_->taken()) {
        return {};
    }
    const auto bytes = stream_->bytes(number);
    return bytes.size() > static_cast<std::size_t>(memory_.place) ? bytes.first(0) : bytes;
}

template <class Unit>
void RequestedEpoch<Unit>::write_mfp(std::uint64_t number, BuilderIndex to, Bytes offset) {
    if (number >= stream_->taken()) {  // the epoch ends before this MFP is taken
        counters_.mfps_absent.add(1);
    }
    const Immediate immediate{.epoch = parts_.epoch,
                              .slot = memory_.slot_at(offset) % Immediate::slots,
                              .stream = self_readout().value()};
    send_queue_.write({.to = members_.builders[to],
                       .bytes = mfp(number),
                       .offset = offset,
                       .immediate = immediate.encode(),
                       .context = number * builders() + to.value()});
}

template <class Unit>
void RequestedEpoch<Unit>::collect(EventId event, std::uint32_t slot) {
    if (event_in_[slot] != event) {
        event_in_[slot] = event;
        std::fill_n(&size_of(slot, ReadoutIndex()), memory_.readouts, kUnusable);
    }
    begin_building(slot);
}

template <class Unit>
std::span<std::byte> RequestedEpoch<Unit>::place(std::uint32_t slot, ReadoutIndex readout) {
    return parts_.output->area().bytes().subspan(
        static_cast<std::size_t>(memory_.mfp_at(slot, readout)),
        static_cast<std::size_t>(memory_.place));
}

template <class Unit>
Bytes RequestedEpoch<Unit>::read_size(std::uint32_t slot, ReadoutIndex readout) {
    const auto front = place(slot, readout);
    const auto mark = front.first(kMark);
    Bytes& size = size_of(slot, readout);
    if (std::ranges::all_of(mark, [](std::byte byte) { return byte == std::byte{0}; })) {
        size = 0;
        return size;
    }
    const auto declared = protocol::mfp_size(
        {reinterpret_cast<const std::uint8_t*>(front.data()), protocol::mfp_header_bytes});
    const bool fits =
        declared && *declared >= protocol::mfp_header_bytes && *declared <= memory_.place;
    size = fits ? *declared : kUnusable;
    if (size == kUnusable) {
        counters_.mfps_malformed.add(1);
    }
    return size;
}

/// Delivers the event with the MFPs that have been received.
template <class Unit>
void RequestedEpoch<Unit>::deliver(EventId event, std::uint32_t slot) {
    clear_table();
    for (const ReadoutIndex readout : members_.readouts.indices()) {
        const Bytes size = size_of(slot, readout);
        if (size > 0 || (Unit::takes_empty_fragments && size == 0)) {
            put_in_table(readout, 0, memory_.mfp_at(slot, readout) - memory_.event_at(slot), size);
        }
    }
    hand_over({.slot = slot,
               .key = number(event),
               .mep = number(event),
               .place = memory_.event_at(slot),
               .bytes = memory_.event_bytes()});
}

/// Calls `use` with the type of the protocol's unit.
template <class Use>
auto with_unit(Protocol protocol, Use use) {
    return protocol == Protocol::pull ? use(std::type_identity<PullUnit>())
                                      : use(std::type_identity<DaqpipeUnit>());
}

}  // namespace

/// Checks protocols in which a readout unit sends all its data of an event as one MFP.
base::expected<void> check_requested(const NodeConfig& config) {
    return with_unit(
        config.protocol, [&]<class Unit>(std::type_identity<Unit>) -> base::expected<void> {
            DAQLOOM_REFUSE_IF(config.streams != 1,
                              "{} streams; in {} a readout unit has one, of MFPs with all it holds",
                              config.streams, Unit::words.protocol);
            const std::uint32_t readouts = units_in(config.slots.readouts);
            const std::uint32_t builders = units_in(config.slots.builders);
            return EventMemory::of<Unit>(config, {readouts, builders, readouts})
                .map([](const EventMemory&) {});
        });
}

base::expected<std::unique_ptr<Epoch>> make_requested_epoch(const EpochParts& parts,
                                                            Members members) {
    return with_unit(
        parts.config->protocol,
        [&]<class Unit>(std::type_identity<Unit>) -> base::expected<std::unique_ptr<Epoch>> {
            auto epoch = std::make_unique<RequestedEpoch<Unit>>(parts, std::move(members));
            DAQLOOM_CHECK(epoch->make_unit());
            return epoch;
        });
}

}  // namespace daqloom::live

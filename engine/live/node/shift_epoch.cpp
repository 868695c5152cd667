// An epoch under linear shifting: the readout unit, the builder unit or both of a node.
#include <algorithm>
#include <optional>
#include <utility>

#include "live/memory/clock.hpp"
#include "live/node/stream_intake.hpp"
#include "live/node/unit_epoch.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/machines/shift_unit.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;
using protocol::BarrierMessage;
using protocol::BuilderIndex;
using protocol::Immediate;
using protocol::MepId;
using protocol::Participant;
using protocol::PushBuilder;
using protocol::PushWrite;
using protocol::ReadoutIndex;
using protocol::ShiftStage;
using protocol::ShiftUnit;
using protocol::StreamIndex;
using protocol::UnitMessage;
using Kind = UnitMessage::Kind;

std::uint64_t number(MepId mep) { return static_cast<std::uint64_t>(mep); }

class ShiftEpoch final : public UnitEpoch {
  public:
    ShiftEpoch(const EpochParts& parts, Members members)
        : UnitEpoch(parts, std::move(members), parts.config->streams) {}

    base::expected<void> make_units();

    void begin() override;
    bool step(Time now) override;
    [[nodiscard]] Time next_timer() const override { return std::min(timer_, idle_until_); }
    void on_lease(std::uint64_t mep_end) override;
    void on_close(std::span<const UnitIndex> lost) override;
    [[nodiscard]] bool is_drained() const override;
    void end() override;
    [[nodiscard]] std::uint64_t next_mep() const override;

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;

  private:
    struct ReadoutOut;
    struct BuilderOut;

    bool feed_streams();
    bool give_back_acknowledged();
    bool fire_timers(Time now);
    bool take_back_consumed();
    void count();
    void for_readout_unit(UnitIndex from, const UnitMessage& message);
    void for_builder_unit(UnitIndex from, const UnitMessage& message);
    void enter(std::uint64_t step, ShiftStage stage, Time at);
    /// The unit to whose builder unit it sends in this step.
    [[nodiscard]] UnitIndex partner(std::uint64_t step) const;
    [[nodiscard]] Counter* cause_of_waiting() const override;
    [[nodiscard]] bool waits_for_its_own() const override;
    void deliver(MepId mep, Bytes place, Bytes bytes);
    [[nodiscard]] protocol::MepLayout layout() const {
        return {.header = header_bytes(), .alignment = kMfpAlignment};
    }
    /// Of a MEP of this builder unit's.
    [[nodiscard]] std::uint32_t slot_of(MepId mep) const {
        return static_cast<std::uint32_t>(protocol::turn_of(mep, builders()) % Immediate::slots);
    }

    std::optional<ShiftUnit> readout_;
    std::optional<PushBuilder> builder_;
    base::Table<StreamIndex, StreamIntake> streams_;
    std::vector<Bytes> offsets_;  ///< of the epoch's streams, in a MEP

    // ---- requests of the readout unit that must not be answered from within its call
    bool is_phase_ready_ = false;
    base::Table<StreamIndex, std::uint32_t> acknowledged_;  ///< MFPs, per stream
    Time timer_ = Time::never();
    Time idle_until_ = Time::never();

    ShiftStage stage_ = ShiftStage::finished;
    Time stage_since_ = Time::zero();
    std::uint64_t step_ = 0;
    Time step_since_ = Time::zero();
    std::uint64_t discarded_before_ = 0;  ///< MEPs, in earlier epochs
};

/// See ShiftUnitOut.
struct ShiftEpoch::ReadoutOut {
    ShiftEpoch& epoch;

    void admitted(StreamIndex, MepId, Bytes) {}
    void announce(BuilderIndex builder, MepId mep, std::span<const Bytes> sizes) {
        epoch.send(epoch.members_.builders[builder], {Kind::announce, 0, number(mep), sizes});
    }
    void write(const PushWrite& write) {
        const auto& config = epoch.config();
        const Immediate immediate{
            .epoch = epoch.parts_.epoch,
            .slot = epoch.slot_of(write.mep),
            .stream = epoch.self_readout().value() * config.streams + write.stream.value()};
        epoch.post_.write({.to = epoch.members_.builders[write.builder],
                           .bytes = epoch.streams_[write.stream].bytes(number(write.mep)),
                           .offset = write.to,
                           .immediate = immediate.encode(),
                           .context = number(write.mep) * config.streams + write.stream.value()});
    }
    void acknowledge(StreamIndex stream, MepId) { ++epoch.acknowledged_[stream]; }
    void send_barrier(Participant to, BarrierMessage message) {
        epoch.send(epoch.members_.readouts[ReadoutIndex(to)],
                   {Kind::barrier, message.round, message.generation, {}});
    }
    void last_announcement(BuilderIndex builder, std::uint64_t turn_end) {
        epoch.send(epoch.members_.builders[builder], {Kind::last_announcement, 0, turn_end, {}});
    }
    void enter_barrier(std::uint64_t) {}
    void phase_ready(std::uint64_t) { epoch.is_phase_ready_ = true; }
    void idle_for(Time length) { epoch.idle_until_ = now() + length; }
    void set_timer(Time at) { epoch.timer_ = at; }
    void stage(std::uint64_t step, ShiftStage stage) { epoch.enter(step, stage, now()); }
};

/// See PushBuilderOut.
struct ShiftEpoch::BuilderOut {
    ShiftEpoch& epoch;

    void grant(ReadoutIndex readout, MepId mep, std::span<const Bytes> offsets) {
        epoch.counters_.answered_to(epoch.in_run(number(mep)) + 1);
        epoch.begin_building(epoch.slot_of(mep));
        send(readout, {Kind::grant, 0, number(mep), offsets});
    }
    void discard(ReadoutIndex readout, MepId mep) {
        epoch.counters_.answered_to(epoch.in_run(number(mep)) + 1);
        send(readout, {Kind::discard, 0, number(mep), {}});
    }
    void built(MepId mep, Bytes place, Bytes bytes) { epoch.deliver(mep, place, bytes); }
    void incomplete(MepId mep, Bytes place, Bytes bytes) { epoch.deliver(mep, place, bytes); }
    void closing(ReadoutIndex readout, std::uint64_t answered) {
        send(readout, {Kind::closing, 0, answered, {}});
    }
    void last_answer(ReadoutIndex readout, std::uint64_t turn_end) {
        send(readout, {Kind::last_answer, 0, turn_end, {}});
    }

    void send(ReadoutIndex readout, const UnitMessage& message) {
        epoch.send(epoch.members_.readouts[readout], message);
    }
};

base::expected<void> ShiftEpoch::make_units() {
    const NodeConfig& config = this->config();
    // MEPs of this round and of the next, as in the simulated event builder.
    const std::uint32_t buffered = 2 * config.meps_per_phase * builders();
    if (self_readout() != ReadoutIndex::none()) {
        protocol::ShiftUnitConfig unit{{config}, self_readout()};
        unit.readout.streams = config.streams;
        unit.readout.builders = builders();
        unit.readout.buffered_mfps = buffered;
        unit.readout.largest_mfp = std::min(config.stream_buffer, protocol::largest_mfp_size);
        // The stream's buffer limits the MFPs; this is only an upper bound.
        unit.readout.stream_buffer = unit.readout.largest_mfp * (Bytes{buffered} + 2);
        unit.readout.announced_meps = config.meps_per_phase;
        unit.readout.write_rate = config.write_rate;
        auto made = ShiftUnit::make(unit, members_.shift);
        if (!made) {
            return tl::unexpected(made.error());
        }
        readout_.emplace(std::move(*made));
        for (Buffer& buffer : parts_.streams) {
            streams_.push_back(StreamIntake(buffer, parts_.first_mep, buffered + 1, counters_));
        }
        acknowledged_.resize(config.streams);
    }
    if (self_builder() != BuilderIndex::none()) {
        protocol::PushBuilderConfig builder;
        builder.self = self_builder();
        builder.builders = builders();
        builder.streams.assign(readouts(), config.streams);
        builder.concurrent_meps = 2 * config.meps_per_phase;  // of this round and of the next
        builder.announced_meps = config.meps_per_phase;
        builder.output_buffer = config.output_buffer;
        builder.output_meps = parts_.output->pieces();
        builder.when_full = config.when_full;
        builder.when_incomplete = config.delivers_incomplete ? protocol::WhenIncomplete::deliver
                                                             : protocol::WhenIncomplete::drop;
        builder.layout = layout();
        if (builder.concurrent_meps + builder.announced_meps > Immediate::slots ||
            readouts() * config.streams > Immediate::streams) {
            return base::failure(
                "more MEPs per phase, or more streams, than the 32 bits that come "
                "with a write can tell apart; give at most 341 and 65 536");
        }
        auto made = PushBuilder::make(std::move(builder));
        if (!made) {
            return tl::unexpected(made.error());
        }
        builder_.emplace(std::move(*made));
        make_outlet();
        discarded_before_ = counters_.meps_discarded;
        offsets_.resize(std::size_t{readouts()} * config.streams);
    }
    return {};
}

void ShiftEpoch::begin() {
    stage_since_ = step_since_ = now();
    if (readout_) {
        ReadoutOut out{*this};
        readout_->on_start(parts_.start, out);
    }
}

bool ShiftEpoch::step(Time now) {
    bool did = post_.retry();
    if (readout_) {
        did |= fire_timers(now);
        did |= give_back_acknowledged();
        did |= feed_streams();
    }
    if (builder_) {
        did |= take_back_consumed();
    }
    count();
    return did;
}

void ShiftEpoch::count() {
    std::uint64_t messages = 0;
    std::uint64_t writes = 0;
    if (readout_) {
        const auto& readout = readout_->readout().counters();
        messages +=
            readout.unexpected_answers + readout.from_lost + readout_->counters().unexpected;
        messages += readout_->barrier() ? readout_->barrier()->counters().unexpected : 0;
    }
    if (builder_) {
        const auto& builder = builder_->counters();
        messages += builder.unexpected_sizes;
        writes += builder.unexpected_mfps + builder.from_lost;
        counters_.meps_discarded.set(discarded_before_ + builder.discarded);
    }
    count_refused(messages, writes);
}

bool ShiftEpoch::fire_timers(Time now) {
    ReadoutOut out{*this};
    bool did = false;
    if (std::exchange(is_phase_ready_, false)) {
        readout_->on_phase(now, out);
        did = true;
    }
    if (now >= timer_) {
        timer_ = Time::never();
        readout_->on_timer(now, out);
        did = true;
    }
    if (now >= idle_until_) {
        idle_until_ = Time::never();
        readout_->on_idle_over(now, out);
        did = true;
    }
    return did;
}

bool ShiftEpoch::give_back_acknowledged() {
    ReadoutOut out{*this};
    bool did = false;
    for (const StreamIndex stream : acknowledged_.indices()) {
        for (; acknowledged_[stream] > 0; --acknowledged_[stream], did = true) {
            streams_[stream].give_back();
            readout_->on_acknowledged(stream, out);
        }
    }
    return did;
}

bool ShiftEpoch::feed_streams() {
    ReadoutOut out{*this};
    bool did = false;
    for (const StreamIndex stream : streams_.indices()) {
        StreamIntake& intake = streams_[stream];
        while (readout_->readout().takes_more(stream) && intake.has_next()) {
            readout_->on_generated(stream, intake.take(), out);
            did = true;
        }
    }
    return did;
}

bool ShiftEpoch::take_back_consumed() {
    BuilderOut out{*this};
    return take_back([&](std::uint64_t turn) {
        builder_->on_processed(protocol::mep_of(self_builder(), turn, builders()), out);
    });
}

bool ShiftEpoch::waits_for_its_own() const {
    const bool waits_for_consumer = builder_ && config().when_full == protocol::WhenFull::wait &&
                                    builder_->under_construction() == 0 && !is_consumed();
    return cause_of_waiting() == &counters_.waiting_for_source || waits_for_consumer;
}

/// None unless the readout unit is in its sending stage.
Counter* ShiftEpoch::cause_of_waiting() const {
    if (!readout_ || stage_ != ShiftStage::sending) {
        return nullptr;
    }
    const auto& readout = readout_->readout();
    const auto& counted = readout.counters();
    if (readout.writes_under_way() > 0 || !post_.is_empty()) {
        return &counters_.waiting_for_network;
    }
    return counted.announced > counted.granted + counted.discarded ? &counters_.waiting_for_builder
                                                                   : &counters_.waiting_for_source;
}

void ShiftEpoch::enter(std::uint64_t step, ShiftStage stage, Time at) {
    const Time spent = at - stage_since_;
    counters_.phase_time.add(stage_ == ShiftStage::finished ? Time::zero() : spent);
    switch (stage_) {
        case ShiftStage::entering:
            counters_.entering_time.add(spent);
            break;
        case ShiftStage::sending:
            counters_.sending_time.add(spent);
            counters_.phases.add(1);
            break;
        case ShiftStage::idle:
            counters_.idle_time.add(spent);
            counters_.phases.add(1);
            counters_.idle_phases.add(1);
            break;
        case ShiftStage::in_barrier:
            counters_.barrier_time.add(spent);
            counters_.barriers.add(1);
            counters_.in_barriers.record(spent);
            break;
        case ShiftStage::finished:
            break;
    }
    stage_ = stage;
    stage_since_ = at;
    if (step != step_) {
        counters_.in_phases.record(at - step_since_);
        step_ = step;
        step_since_ = at;
    }
    if (parts_.trace != nullptr && parts_.trace->is_on()) {
        parts_.trace->add({at, step, parts_.epoch, partner(step), stage});
    }
}

UnitIndex ShiftEpoch::partner(std::uint64_t step) const {
    const auto phase = static_cast<std::uint32_t>(step % members_.shift.phases());
    const BuilderIndex builder = members_.shift.builder_for(self_readout(), phase);
    return builder == BuilderIndex::none() ? UnitIndex::none() : members_.builders[builder];
}

// ---- messages -----------------------------------------------------------------------------------

void ShiftEpoch::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    const auto message = message_of(from, bytes);
    if (!message) {
        return;
    }
    const bool is_for_builder =
        message->kind == Kind::announce || message->kind == Kind::last_announcement;
    if (is_for_builder && builder_ && members_.readout_of[from] != ReadoutIndex::none()) {
        for_builder_unit(from, *message);
    } else if (!is_for_builder && readout_) {
        for_readout_unit(from, *message);
    } else {
        refuse_message();
    }
}

void ShiftEpoch::for_builder_unit(UnitIndex from, const UnitMessage& message) {
    BuilderOut out{*this};
    const ReadoutIndex readout = members_.readout_of[from];
    if (message.kind == Kind::announce) {
        builder_->on_sizes(readout, MepId{message.number}, message.values, out);
    } else {
        builder_->on_last_announcement(readout, message.number, out);
    }
}

/// A builder unit may send messages about its own MEPs only, a readout unit barrier messages.
void ShiftEpoch::for_readout_unit(UnitIndex from, const UnitMessage& message) {
    ReadoutOut out{*this};
    const BuilderIndex builder = members_.builder_of[from];
    const ReadoutIndex readout = members_.readout_of[from];
    const MepId mep{message.number};
    const bool is_its_own =
        builder != BuilderIndex::none() && protocol::builder_of(mep, builders()) == builder;
    if (message.kind == Kind::grant && is_its_own) {
        readout_->on_grant(mep, message.values, now(), out);
    } else if (message.kind == Kind::discard && is_its_own) {
        readout_->on_discard(mep, now(), out);
    } else if (message.kind == Kind::closing && builder != BuilderIndex::none()) {
        readout_->on_closing(builder, message.number, out);
    } else if (message.kind == Kind::last_answer && builder != BuilderIndex::none()) {
        readout_->on_last_answer(builder, message.number);
    } else if (message.kind == Kind::barrier && readout != ReadoutIndex::none()) {
        readout_->on_barrier_message(readout.value(), {message.number, message.round}, out);
    } else {
        refuse_message();
    }
}

void ShiftEpoch::on_written(UnitIndex from, std::uint32_t bits) {
    const auto immediate = immediate_of(from, bits);
    if (!immediate) {
        return;
    }
    const std::uint32_t streams = config().streams;
    const std::uint64_t turn = protocol::turn_in_slot(immediate->slot, builder_->oldest_turn());
    BuilderOut out{*this};
    counters_.mfps_received.add(1);
    builder_->on_written(ReadoutIndex(immediate->stream / streams),
                         StreamIndex(immediate->stream % streams),
                         protocol::mep_of(self_builder(), turn, builders()), out);
}

void ShiftEpoch::on_write_done(std::uint64_t context) {
    const std::uint32_t streams = config().streams;
    const std::uint64_t mep = context / streams;
    const StreamIndex stream(context % streams);
    counters_.mfps_written.add(1);
    counters_.mfp_bytes_written.add(streams_[stream].bytes(mep).size());
    ReadoutOut out{*this};
    readout_->on_write_done(MepId{mep}, stream, now(), out);
}

// ---- MEPs ---------------------------------------------------------------------------------------

void ShiftEpoch::deliver(MepId mep, Bytes place, Bytes bytes) {
    const auto sizes = builder_->sizes_of(mep);
    protocol::lay_out(layout(), sizes, offsets_);
    clear_table();
    for (std::uint32_t number = 0; number < sizes.size(); ++number) {
        if (builder_->is_written(mep, number)) {
            const auto [readout, stream] = builder_->stream_of(number);
            put_in_table(readout, stream.value(), offsets_[number], sizes[number]);
        }
    }
    hand_over({.slot = slot_of(mep),
               .key = protocol::turn_of(mep, builders()),
               .mep = number(mep),
               .place = place,
               .bytes = bytes});
}

void ShiftEpoch::on_lease(std::uint64_t mep_end) {
    if (builder_) {
        BuilderOut out{*this};
        builder_->on_lease(protocol::turns_before(self_builder(), in_epoch(mep_end), builders()),
                           out);
    }
}

// ---- the end ------------------------------------------------------------------------------------

void ShiftEpoch::on_close(std::span<const UnitIndex> lost) {
    const Lost gone = lose(lost);
    timer_ = idle_until_ = Time::never();
    is_phase_ready_ = false;
    if (readout_) {
        ReadoutOut out{*this};
        readout_->on_close(gone.builders, now(), out);
    }
    if (builder_) {
        BuilderOut out{*this};
        builder_->on_close(gone.readouts, out);
    }
}

bool ShiftEpoch::is_drained() const {
    return (!readout_ || readout_->readout().is_drained()) &&
           (!builder_ || builder_->is_drained()) && post_.is_empty();
}

void ShiftEpoch::end() {
    if (builder_) {
        BuilderOut out{*this};
        builder_->on_end(out);
        counters_.meps_dropped.add(builder_->counters().dropped);
    }
}

std::uint64_t ShiftEpoch::next_mep() const {
    return parts_.first_mep + std::max(readout_ ? readout_->readout().next_mep() : 0,
                                       builder_ ? builder_->next_mep() : 0);
}

}  // namespace

base::expected<std::unique_ptr<Epoch>> make_shift_epoch(const EpochParts& parts, Members members) {
    auto epoch = std::make_unique<ShiftEpoch>(parts, std::move(members));
    if (auto made = epoch->make_units(); !made) {
        return tl::unexpected(made.error());
    }
    return epoch;
}

}  // namespace daqloom::live

// An epoch of linear shifting: connects this node's unit with transport, sources and consumer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/random.hpp"
#include "live/memory/clock.hpp"
#include "live/node/epoch/stream_intake.hpp"
#include "live/node/epoch/unit_config.hpp"
#include "live/node/epoch/unit_epoch.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/units/shift_unit.hpp"
#include "protocol/units/timers.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::Immediate;
using protocol::MepId;
using protocol::PushWrite;
using protocol::ReadoutIndex;
using protocol::ShiftStage;
using protocol::ShiftUnit;
using protocol::StreamIndex;
using protocol::UnitMessage;
using protocol::UnitTimer;

/// Counters of the time in each stage.
constexpr std::array kTimeIn = {&NodeCounters::entering_ps, &NodeCounters::asking_ps,
                                &NodeCounters::sending_ps, &NodeCounters::idle_ps,
                                &NodeCounters::in_barrier_ps};

std::uint64_t number(MepId mep) { return static_cast<std::uint64_t>(mep); }

class ShiftEpoch final : public UnitEpoch {
  public:
    ShiftEpoch(const EpochParts& parts, Members members)
        : UnitEpoch(parts, std::move(members), parts.config->streams),
          jitter_(config().seed,
                  fmt::format("phase jitter of {}, {}", config().self.value(), parts.epoch)) {}

    base::expected<void> make_unit();

    void begin() override;
    bool step(Time now) override;
    [[nodiscard]] Time next_timer() const override {
        return std::min(timers_.next(), next_processed());
    }
    void on_lease(std::uint64_t mep_end) override;
    void on_close(std::span<const UnitIndex> lost) override;
    [[nodiscard]] bool is_drained() const override {
        return unit_->is_drained() && send_queue_.is_empty();
    }
    void end() override;
    [[nodiscard]] std::uint64_t next_mep() const override { return in_run(unit_->next_mep()); }

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;
    void on_released() override;

  private:
    struct World;

    bool feed_streams();
    bool give_back_acknowledged();
    void count();
    void enter(std::uint64_t step, ShiftStage stage, Time at);
    /// The unit with the builder unit to which this unit sends in step `step`.
    [[nodiscard]] UnitIndex partner(std::uint64_t step) const;
    [[nodiscard]] Counter* cause_of_waiting() const override;
    [[nodiscard]] bool waits_for_its_own() const override;
    [[nodiscard]] bool waits_for_consumer() const override {
        return !lacks_data_ && is_at_consumer();
    }
    /// Whether the builder unit builds nothing and its consumer has not processed everything.
    [[nodiscard]] bool is_at_consumer() const;
    [[nodiscard]] bool awaits_answer() const;
    void deliver(MepId mep, Bytes place, Bytes bytes);
    /// The slot of a MEP of this unit's builder unit.
    [[nodiscard]] std::uint32_t slot_of(MepId mep) const {
        return static_cast<std::uint32_t>(protocol::turn_of(mep, builders()) % Immediate::slots);
    }

    std::optional<ShiftUnit> unit_;
    protocol::Timers timers_{4};
    base::RandomStream jitter_;
    base::Table<StreamIndex, StreamIntake> streams_;
    bool lacks_data_ = false;  ///< a stream has no MFP that the readout unit could take
    base::Table<StreamIndex, std::uint32_t> acknowledged_;  ///< MFPs to be given back, per stream
    protocol::MepLayout layout_;
    std::vector<Bytes> offsets_;  ///< offsets of the epoch's streams in a MEP

    protocol::StageClock stage_;
    std::uint64_t step_ = 0;
    std::uint64_t released_ = 0;  ///< barriers of the network
    Time step_since_ = Time::zero();
    // ---- sums of earlier epochs
    std::uint64_t discarded_before_ = 0;  ///< MEPs
    std::uint64_t requests_before_ = 0;   ///< requests to write
    std::uint64_t ahead_before_ = 0;      ///< answers ahead of time
};

/// See ShiftWorld.
struct ShiftEpoch::World {
    ShiftEpoch& epoch;

    void send(ReadoutIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.readouts[to], message);
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        epoch.send(epoch.members_.builders[to], message);
    }
    void set_timer(Time at, UnitTimer timer) {
        if (timer.begins_phase()) {
            at += epoch.config().phase_jitter.draw(epoch.jitter_);
        }
        epoch.timers_.set(at, timer);
    }
    void admitted(StreamIndex, MepId, Bytes) {}
    void write(const PushWrite& write) {
        const auto& config = epoch.config();
        const Immediate immediate{
            .epoch = epoch.parts_.epoch,
            .slot = epoch.slot_of(write.mep),
            .stream = epoch.self_readout().value() * config.streams + write.stream.value()};
        epoch.send_queue_.write(
            {.to = epoch.members_.builders[write.builder],
             .bytes = epoch.streams_[write.stream].bytes(number(write.mep)),
             .offset = write.to,
             .immediate = immediate.encode(),
             .context = number(write.mep) * config.streams + write.stream.value()});
    }
    void acknowledge(StreamIndex stream, MepId) { ++epoch.acknowledged_[stream]; }
    void enter_barrier(std::uint64_t) { epoch.parts_.transport->enter_barrier(); }
    void stage(std::uint64_t step, ShiftStage stage) { epoch.enter(step, stage, now()); }
    void answered(MepId mep, bool is_granted) {
        epoch.counters_.answered_to(epoch.in_run(number(mep)) + 1);
        if (is_granted) {
            epoch.begin_building(epoch.slot_of(mep));
        }
    }
    void deliver(MepId mep, Bytes place, Bytes bytes) { epoch.deliver(mep, place, bytes); }
};

base::expected<void> ShiftEpoch::make_unit() {
    const bool builds = self_builder() != BuilderIndex::none();
    const auto made = shift_unit_config(config(), members_, builds ? parts_.output->pieces() : 0);
    DAQLOOM_REFUSE_IF(
        made.builder.concurrent_meps + made.builder.announced_meps > Immediate::slots ||
            readouts() * config().streams > Immediate::streams,
        "more MEPs per phase, or more streams, than fit the immediate bits of a write; give at "
        "most 341 and 65536");
    DAQLOOM_TRY(unit, ShiftUnit::make(made, members_.shift));
    unit_.emplace(std::move(unit));
    if (unit_->readout() != nullptr) {
        for (Buffer& buffer : parts_.streams) {
            streams_.push_back(
                StreamIntake(buffer, parts_.first_mep, made.readout.buffered_mfps + 1, counters_));
        }
        acknowledged_.resize(config().streams);
    }
    if (builds) {
        make_mep_output();
        layout_ = made.builder.layout;
        discarded_before_ = counters_.meps_discarded;
        requests_before_ = counters_.write_requests;
        ahead_before_ = counters_.answered_ahead;
        offsets_.resize(std::size_t{readouts()} * config().streams);
    }
    return {};
}

void ShiftEpoch::begin() {
    stage_.since = step_since_ = now();
    if (unit_->readout() != nullptr) {
        World world{*this};
        unit_->on_start(parts_.start, now(), world);
    }
}

bool ShiftEpoch::step(Time now) {
    World world{*this};
    bool did = send_queue_.retry();
    if (const auto timer = timers_.take(now)) {
        unit_->on_timer(timer->what, now, world);
        did = true;
    }
    did |= give_back_acknowledged();
    did |= feed_streams();
    if (unit_->builder() != nullptr) {
        did |= take_back(now, [&](std::uint64_t mep) { unit_->on_consumed(MepId{mep}, world); });
    }
    count();
    return did;
}

void ShiftEpoch::count() {
    const auto ignored = unit_->ignored();
    count_refused(ignored.messages, ignored.writes);
    if (const auto* builder = unit_->builder()) {
        counters_.meps_discarded.set(discarded_before_ + builder->counters().discarded);
    }
    if (const auto* pacer = unit_->pacer()) {
        counters_.write_requests.set(requests_before_ + pacer->counters().requests);
        counters_.answered_ahead.set(ahead_before_ + pacer->counters().ahead);
    }
}

bool ShiftEpoch::give_back_acknowledged() {
    World world{*this};
    bool did = false;
    for (const StreamIndex stream : acknowledged_.indices()) {
        for (; acknowledged_[stream] > 0; --acknowledged_[stream], did = true) {
            streams_[stream].give_back();
            unit_->on_acknowledged(stream, world);
        }
    }
    return did;
}

bool ShiftEpoch::feed_streams() {
    World world{*this};
    bool did = false;
    bool lacks_data = false;
    for (const StreamIndex stream : streams_.indices()) {
        StreamIntake& intake = streams_[stream];
        while (unit_->readout()->takes_more(stream) && intake.has_next()) {
            unit_->on_data(stream, intake.take(), world);
            did = true;
        }
        lacks_data |= unit_->readout()->takes_more(stream);
    }
    lacks_data_ = lacks_data;
    return did;
}

bool ShiftEpoch::waits_for_its_own() const {
    return (stage_.stage == ShiftStage::sending && send_queue_.is_empty() &&
            unit_->readout()->writes_under_way() == 0 && !awaits_answer()) ||
           is_at_consumer();
}

bool ShiftEpoch::is_at_consumer() const {
    const auto* builder = unit_->builder();
    return builder != nullptr && config().when_full == protocol::WhenFull::wait &&
           builder->under_construction() == 0 && builder->meps_held() > 0;
}

/// Whether announced sizes of this readout unit still lack a builder unit's answer.
bool ShiftEpoch::awaits_answer() const {
    const auto& counted = unit_->readout()->counters();
    return counted.announced > counted.granted + counted.discarded;
}

/// Counter for waiting time in the sending stage, by cause; otherwise null. Builder units answer
/// when all readout units have data, so one without data waits for its own sources.
Counter* ShiftEpoch::cause_of_waiting() const {
    if (stage_.stage != ShiftStage::sending) {
        return nullptr;
    }
    if (unit_->readout()->writes_under_way() > 0 || !send_queue_.is_empty()) {
        return &counters_.waiting_for_network_ps;
    }
    return awaits_answer() && !lacks_data_ ? &counters_.waiting_for_builder_ps
                                           : &counters_.waiting_for_source_ps;
}

void ShiftEpoch::enter(std::uint64_t step, ShiftStage stage, Time at) {
    const ShiftStage ended = stage_.stage;
    const Time spent = stage_.enter(stage, at);
    if (ended != ShiftStage::finished) {
        counters_.in_phases_ps.add(spent);
        (counters_.*kTimeIn[static_cast<std::size_t>(ended)]).add(spent);
    }
    counters_.phases.add(ended == ShiftStage::sending || ended == ShiftStage::idle ? 1 : 0);
    counters_.idle_phases.add(ended == ShiftStage::idle ? 1 : 0);
    if (ended == ShiftStage::in_barrier) {
        counters_.barriers.add(1);
        counters_.in_barrier.record(spent);
    }
    if (step != step_) {
        counters_.in_phase.record(at - step_since_);
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
    receive(*unit_, World{*this}, from, bytes);
}

void ShiftEpoch::on_written(UnitIndex from, std::uint32_t bits) {
    const auto immediate = immediate_of(from, bits);
    if (!immediate) {
        return;
    }
    const std::uint32_t streams = config().streams;
    const std::uint64_t turn =
        protocol::turn_in_slot(immediate->slot, unit_->builder()->oldest_turn());
    World world{*this};
    counters_.mfps_received.add(1);
    unit_->on_written(ReadoutIndex(immediate->stream / streams),
                      StreamIndex(immediate->stream % streams),
                      protocol::mep_of(self_builder(), turn, builders()), now(), world);
}

void ShiftEpoch::on_write_done(std::uint64_t context) {
    const std::uint32_t streams = config().streams;
    const std::uint64_t mep = context / streams;
    const StreamIndex stream(context % streams);
    counters_.mfps_written.add(1);
    counters_.mfp_bytes_written.add(streams_[stream].bytes(mep).size());
    World world{*this};
    unit_->on_write_done(MepId{mep}, stream, now(), world);
}

void ShiftEpoch::on_released() {
    World world{*this};
    unit_->on_released(released_++, now(), world);
}

// ---- MEPs ---------------------------------------------------------------------------------------

void ShiftEpoch::deliver(MepId mep, Bytes place, Bytes bytes) {
    const protocol::PushBuilder& builder = *unit_->builder();
    const auto sizes = builder.sizes_of(mep);
    protocol::lay_out(layout_, sizes, offsets_);
    clear_table();
    for (std::uint32_t number = 0; number < sizes.size(); ++number) {
        if (builder.is_written(mep, number)) {
            const auto [readout, stream] = builder.stream_of(number);
            put_in_table(readout, stream.value(), offsets_[number], sizes[number]);
        }
    }
    hand_over({.slot = slot_of(mep),
               .key = number(mep),
               .mep = number(mep),
               .place = place,
               .bytes = bytes});
}

void ShiftEpoch::on_lease(std::uint64_t mep_end) {
    World world{*this};
    unit_->on_lease(in_epoch(mep_end), world);
}

void ShiftEpoch::on_close(std::span<const UnitIndex> lost) {
    const Lost gone = lose(lost);
    World world{*this};
    unit_->on_close(gone.readouts, gone.builders, now(), world);
}

/// Ends the epoch without giving back MFPs: the next epoch determines where the streams continue.
void ShiftEpoch::end() {
    World world{*this};
    unit_->on_end(0, world);
    if (const auto* builder = unit_->builder()) {
        counters_.meps_dropped.add(builder->counters().dropped);
    }
}

}  // namespace

/// Checks that a stream's buffer holds a round of all builder units, and an output buffer a MEP,
/// for MFPs of average size with headers and padding.
base::expected<void> check_shift(const NodeConfig& config) {
    const base::Bytes padding = base::Bytes{1} << protocol::usual_mfp_align;
    base::Bytes largest = 0;
    base::Bytes mep = 0;
    for (const base::Bytes fragment : config.fragment_bytes) {
        const base::Bytes mfp = config.packing * (fragment + 3 + padding) + 20;
        largest = std::max(largest, mfp);
        mep += mfp;
    }
    const base::Bytes round =
        largest * config.meps_per_phase * (base::Bytes{units_in(config.slots.builders)} + 1);
    DAQLOOM_REFUSE_IF(
        config.source == SourceKind::generator && round > config.stream_buffer,
        "stream_buffer of {} bytes; a round of {} builder units, {} multi-fragment packets of "
        "about {} bytes each, takes {}: give at least as much, or pack fewer fragments",
        config.stream_buffer, units_in(config.slots.builders), config.meps_per_phase, largest,
        round);
    if (config.source == SourceKind::generator) {
        DAQLOOM_CHECK(protocol::check_output(config.output_buffer,
                                             protocol::aligned(mep, config.output_alignment)));
    }
    return {};
}

base::expected<std::unique_ptr<Epoch>> make_shift_epoch(const EpochParts& parts, Members members) {
    auto epoch = std::make_unique<ShiftEpoch>(parts, std::move(members));
    DAQLOOM_CHECK(epoch->make_unit());
    return epoch;
}

}  // namespace daqloom::live

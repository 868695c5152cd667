#include "systems/shift/shift_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "systems/shift/unit_outputs.hpp"

namespace daqloom::systems {

using base::Time;
using namespace protocol;

namespace {

/// Sum of the times in each stage, by ShiftStage.
constexpr std::array kTimeIn = {&ShiftReport::entering, &ShiftReport::asking, &ShiftReport::sending,
                                &ShiftReport::idle, &ShiftReport::in_barrier};

/// Rate of the slowest cable of `hosts`: any two of them can write to each other at this rate.
base::BitRate slowest_rate(const network::Graph& graph, std::span<const NodeIndex> hosts) {
    base::BitRate slowest{std::numeric_limits<std::int64_t>::max()};
    for (const network::Cable& cable : graph.cables) {
        for (const network::End end : {cable.a, cable.b}) {
            if (graph.is_host(end.node) && std::ranges::find(hosts, end.node) != hosts.end()) {
                slowest = std::min(slowest, cable.rate);
            }
        }
    }
    return slowest;
}

}  // namespace

protocol::ShiftUnitConfig unit_config(const ShiftSystemConfig& config, const LinearShift& shift,
                                      base::BitRate slowest) {
    auto unit = protocol::ShiftUnitConfig::sized(config, shift, config.streams);
    protocol::PushReadoutConfig& readout = unit.readout;
    if (config.buffered_mfps > 0) {
        readout.buffered_mfps = config.buffered_mfps;
    }
    readout.stream_buffer = config.stream_buffer;
    readout.largest_mfp =
        protocol::largest_mfp(config.fragment_sizes, *std::ranges::max_element(config.mfp_bytes));
    readout.write_rate = slowest;
    unit.builder.output_buffer = config.output_buffer;
    unit.builder.usual_mep =
        std::accumulate(config.mfp_bytes.begin(), config.mfp_bytes.end(), base::Bytes{0});
    return unit;
}

ShiftSystem::ShiftSystem(const ShiftSystemConfig& config)
    : RegroupingSystem({kOfEpoch, kControl, kSchedule}),
      config_(config),
      jitter_(config.seed, "phase jitter"),
      processing_(config.seed, "processing"),
      acknowledge_(config.seed, "source acknowledge") {}

base::expected<std::unique_ptr<ShiftSystem>> ShiftSystem::make(const ShiftSystemConfig& config) {
    std::unique_ptr<ShiftSystem> system(new ShiftSystem(config));
    DAQLOOM_CHECK(system->build());
    return system;
}

base::expected<void> ShiftSystem::build() {
    DAQLOOM_TRY(shift, place_units());
    DAQLOOM_CHECK(make_units(shift));
    DAQLOOM_CHECK(place_cards());
    nodes().events().push({config_.warmup, kWarm, 0});
    if (config_.run) {
        DAQLOOM_REFUSE_IF(config_.card_buffer > 0,
                          "card_buffer > 0 excludes units that regroup: set card_buffer to 0, or "
                          "leave run out");
        const auto& builders =
            config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
        return make_run(config_, config_, config_.slots, builders, true);
    }
    for (const std::uint32_t node : placement_.readouts.node_of) {
        World world{*this, node, Time::zero()};
        units_[node].on_start(Time::zero(), Time::zero(), world);
    }
    start_flows();
    return {};
}

/// Units and nodes in the order of the slots; in each slot, the readout unit's node comes first.
base::expected<LinearShift> ShiftSystem::place_units() {
    const auto& builder_slots =
        config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
    DAQLOOM_REFUSE_IF(builder_slots.size() != config_.slots.size(),
                      "{} slots of readout and {} of builder units; give as many",
                      config_.slots.size(), builder_slots.size());
    base::Table<SlotIndex, ReadoutIndex> readout_in;
    base::Table<SlotIndex, BuilderIndex> builder_in;
    for (std::size_t slot = 0; slot < config_.slots.size(); ++slot) {
        const NodeIndex reads = config_.slots[slot];
        const NodeIndex builds = builder_slots[slot];
        readout_in.push_back(ReadoutIndex::none());
        builder_in.push_back(BuilderIndex::none());
        if (reads != NodeIndex::none()) {
            DAQLOOM_TRY(unit, placement_.put(&Placement::readouts, reads));
            readout_in.back() = unit;
        }
        if (builds != NodeIndex::none()) {
            DAQLOOM_TRY(unit, placement_.put(&Placement::builders, builds));
            builder_in.back() = unit;
        }
    }
    DAQLOOM_CHECK(place_nodes(config_, config_, kFlowDue, {}));
    slowest_rate_ = slowest_rate(graph_of(config_), placement_.hosts);
    return LinearShift::make(std::move(readout_in), std::move(builder_in));
}

base::expected<void> ShiftSystem::make_units(const LinearShift& shift) {
    const std::uint32_t units = shift.readouts();
    stages_of_.resize(units, {ShiftStage::entering, Time::zero()});
    DAQLOOM_REFUSE_IF(
        config_.streams < 1 || config_.streams > kMostStreams ||
            config_.mfp_bytes.size() != std::size_t{units} * config_.streams,
        "{} units with {} streams and {} sizes of MFPs; expected 1 to {} streams, and a size "
        "for each",
        units, config_.streams, config_.mfp_bytes.size(), kMostStreams);
    const std::uint64_t mfps =
        std::uint64_t{units} * shift.builders() * config_.streams * config_.meps_per_phase;
    DAQLOOM_REFUSE_IF(config_.meps_per_phase > kMostMeps || mfps > kMostMfps,
                      "{} MEPs per phase are {} MFPs in a round; give at most {} MEPs and {} MFPs",
                      config_.meps_per_phase, mfps, kMostMeps, kMostMfps);
    for (const base::Bytes bytes : config_.mfp_bytes) {
        base::RandomStream random(config_.seed, fmt::format("mfp {}", streams_.size()));
        streams_.push_back({{config_.fragment_sizes, bytes, std::move(random)}, Time::zero()});
    }
    DAQLOOM_REFUSE_IF(
        config_.barrier == ShiftBarrier::network && config_.barrier_levels.size() != units,
        "a barrier of the network with {} trees; give the levels of one for each of {} units",
        config_.barrier_levels.size(), units);
    auto unit = unit_config(config_, shift, slowest_rate_);
    for (std::size_t node = 0; node < placement_.readouts.unit_on.size(); ++node) {
        unit.self = placement_.readouts.unit_on[node];
        unit.builder.self = placement_.builders.unit_on[node];
        DAQLOOM_TRY(made, protocol::ShiftUnit::make(unit, shift));
        units_.push_back(std::move(made));
    }
    make_groups(shift);
    return {};
}

/// Groups are numbered in the order of their first units.
void ShiftSystem::make_groups(const LinearShift& shift) {
    // A unit that leaves step gets ahead of others by less than the barriers of a round.
    const std::uint64_t ahead =
        config_.barrier_slack + (config_.leaves_step ? barriers_of_round(config_, shift) - 1 : 0);
    std::map<std::uint32_t, std::uint32_t> number_of;
    for (const ReadoutIndex each : stages_of_.indices()) {
        const ReadoutIndex in_run = readouts_in_run_.unit_on[placement_.readouts.node_of[each]];
        const std::uint32_t given =
            config_.barrier_groups.empty() ? 0 : config_.barrier_groups[in_run.value()];
        const auto [found, is_new] =
            number_of.emplace(given, static_cast<std::uint32_t>(groups_.size()));
        if (is_new) {
            groups_.emplace_back().gatherings.resize(2 * ahead + 2);
            if (config_.barrier == ShiftBarrier::network) {
                groups_.back().crossing =
                    config_.barrier_level_latency *
                    (2 * std::int64_t{config_.barrier_levels[in_run.value()]});
            }
        }
        group_of_.push_back(found->second);
        group_of(each).units.push_back(each);
    }
}

base::expected<void> ShiftSystem::place_cards() {
    DAQLOOM_REFUSE_IF(config_.card_buffer > 0 && config_.mfp_interval <= Time::zero(),
                      "card_buffer needs mfp_interval > 0: set event.rate");
    for (std::size_t unit = 0; unit < stages_of_.size(); ++unit) {
        card_delays_.push_back({config_.seed, fmt::format("card acknowledge {}", unit)});
    }
    cards_ = protocol::ReadoutCards(
        config_.mfp_interval, protocol::ReadoutCards::room_of(
                                  config_.card_buffer, config_.mfp_bytes, config_.mfp_interval));
    CardsOut out{*this};
    cards_.on_start(Time::zero(), out);
    return {};
}

void ShiftSystem::taken_from_card(std::uint32_t index, Time now) {
    const ReadoutIndex unit = unit_of(index);
    CardsOut out{*this};
    cards_.on_taken(index, now, out);
    if (cards_.is_limited(index)) {
        Time& at = streams_[index].card_acknowledged_at;
        at = std::max(at, now + config_.card_acknowledge.draw(card_delays_[unit]));
        for (const CardStop& stop : config_.card_stops) {
            at = stop.unit == unit && stop.begin <= at && at < stop.end ? stop.end : at;
        }
        if (at < base::Time::never()) {
            nodes().events().push({at, kCardAcknowledged, index});
        }
    }
}

void ShiftSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    CardsOut cards{*this};
    const auto world_of = [&](ReadoutIndex unit) {
        return World{*this, placement_.readouts.node_of[unit], now};
    };
    switch (event.kind) {
        case kPhase:
        case kWindow:
        case kIdleOver: {
            World world = world_of(ReadoutIndex(event.index));
            const auto what = static_cast<UnitTimer::What>(
                event.kind - kPhase + static_cast<std::uint32_t>(UnitTimer::What::phase));
            units_[world.node].on_timer(
                what, event.kind == kWindow ? nodes().clock(world.node).local(now) : now, world);
            break;
        }
        case kGo: {
            World world{*this, event.index, now};
            units_[world.node].on_timer(UnitTimer::What::go, now, world);
            break;
        }
        case kCard:
            if (!cards_.on_timer(event.index, now, cards)) {
                break;
            }
            if (run_) [[unlikely]] {
                streams_[event.index].kept.push_back(streams_[event.index].sizes.next());
                feed(event.index, now);
            } else {
                World world{*this, node_of_stream(event.index), now};
                units_[world.node].on_data(stream_of(event.index),
                                           streams_[event.index].sizes.next(), world);
            }
            break;
        case kCardAcknowledged:
            cards_.on_acknowledged(event.index, now, cards);
            break;
        case kFreed: {
            World world{*this, node_of_stream(event.index), now};
            units_[world.node].on_acknowledged(stream_of(event.index), world);
            if (run_) {
                feed(event.index, now);
            }
            break;
        }
        case kProcessed: {
            const InProcess built = in_process_[event.index];
            in_process_.release(event.index);
            World world{*this, built.node, now};
            units_[built.node].on_consumed(built.mep, world);
            break;
        }
        case kReleased:
            release_all(groups_[event.index % groups_.size()], now);
            break;
        case kResumed:
            resume(ReadoutIndex(event.index), now);
            break;
        case kWarm:
            begin_counting(config_, now);
            if (config_.warmup > Time::zero()) {  // else counting starts at time zero
                before_ = sums();
            }
            break;
        case kFlowDue:
            on_flow_due(event);
            break;
        default:
            on_run_event(event);
    }
}

void ShiftSystem::on_message(const Message& message, Time now) {
    if (!has_unit(message.to)) [[unlikely]] {
        keep_early(message);
        return;
    }
    const UnitMessage sent = message.content.message();
    const ReadoutIndex from = placement_.readouts.unit_on[message.from];
    World world{*this, message.to, now};
    if (message.is_data) {
        units_[message.to].on_written(from, StreamIndex(sent.round), MepId{sent.number}, now,
                                      world);
    } else if (!units_[message.to].on_message(from, placement_.builders.unit_on[message.from], sent,
                                              now, world)) {
        ++counted_.unexpected;
    }
    report_input(message.to, now);
}

void ShiftSystem::on_written(const Message& message, Time now) {
    ++counted_.mfps_written;
    counted_.bytes_written += message.bytes;
    World world{*this, message.from, now};
    units_[message.from].on_write_done(MepId{message.content.number},
                                       StreamIndex(message.content.round), now, world);
    report_input(message.from, now);
}

void ShiftSystem::enter_stage(ReadoutIndex unit, std::uint64_t step, ShiftStage stage, Time now) {
    const auto [ended, since] = stages_of_[unit];
    const Time spent = stages_of_[unit].enter(stage, now);
    if (ended != ShiftStage::finished) {
        counted_.*kTimeIn[static_cast<std::size_t>(ended)] += spent;
    }
    if (ended == ShiftStage::in_barrier && gathers()) {
        leave_barrier(unit, step, since, now);
    }
    if (stage == ShiftStage::in_barrier && gathers()) {
        gathering(unit, (step + 1) / config_.phases_per_barrier - 1).last = now;
    }
    if (recording_) {
        const ReadoutIndex in_run = readouts_in_run_.unit_on[placement_.readouts.node_of[unit]];
        stages_.push_back({now, step, in_run, stage});
    }
}

void ShiftSystem::leave_barrier(ReadoutIndex unit, std::uint64_t step, Time since, Time now) {
    const std::uint64_t reached = step / config_.phases_per_barrier;
    if (reached <= config_.barrier_slack) {
        return;
    }
    Gathering& here = gathering(unit, reached - 1 - config_.barrier_slack);
    const Time last = std::max(since, here.last);
    here.waiting_for_slowest += last - since;
    here.releasing += now - last;
    if (++here.released == group_of(unit).units.size()) {
        counted_.waiting_for_slowest += here.waiting_for_slowest;
        counted_.releasing += here.releasing;
        ++counted_.barriers;
        here = {};
    }
}

/// In the network's barrier, the processor posts an arrival to the adapter, which sends it up the
/// tree; the release is noticed and processed as a message is.
void ShiftSystem::enter_group(ReadoutIndex unit, std::uint32_t node, std::uint64_t generation,
                              Time now) {
    Group& group = group_of(unit);
    Gathering& here = gathering(unit, generation);
    Time released = now;
    if (config_.barrier == ShiftBarrier::network) {
        const Time posted = nodes().process(node, now);
        if (posted == Time::never()) {
            return;
        }
        here.arrived = std::max(here.arrived, posted + nodes().draw_latency());
        released = here.arrived + group.crossing + config_.polling_delay;
    }
    if (++here.waiting == group.units.size()) {
        group.generation = generation;
        push(released, kReleased, this->released(unit, generation), node);
    }
}

void ShiftSystem::release_all(Group& group, Time now) {
    Gathering& here = group.gatherings[group.generation % group.gatherings.size()];
    here.waiting = 0;
    here.arrived = Time::zero();
    for (const ReadoutIndex unit : group.units) {
        if (config_.barrier == ShiftBarrier::network) {
            const std::uint32_t node = placement_.readouts.node_of[unit];
            push(nodes().process(node, now), kResumed, unit.value(), node);
        } else {
            resume(unit, now);
        }
    }
}

void ShiftSystem::resume(ReadoutIndex unit, Time now) {
    World world{*this, placement_.readouts.node_of[unit], now};
    if (has_unit(world.node)) {
        units_[world.node].on_released(group_of(unit).generation, now, world);
    }
}

ShiftReport ShiftSystem::sums() const {
    ShiftReport all = counted_;
    all.window = now();
    all.stopped_for_acknowledge = cards_.stopped(now()).acknowledge;
    all.stopped_for_memory = cards_.stopped(now()).memory;
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    for (std::uint32_t node = 0; node < units_.size(); ++node) {
        if (has_unit(node)) {
            add(units_[node], all);
        }
    }
    return all;
}

void ShiftSystem::add(const protocol::ShiftUnit& unit, ShiftReport& sums) const {
    sums.steps += unit.counters().steps;
    sums.idle_steps += unit.counters().idle_steps;
    sums.skipped_steps += unit.counters().skipped_steps;
    sums.barriers_passed += unit.counters().passed;
    if (const auto* readout = unit.readout()) {
        sums.mfps_blocked += readout->counters().blocked;
        sums.writes_overran += readout->counters().overran;
    }
    if (const auto* pacer = unit.pacer()) {
        sums.requests += pacer->counters().requests;
        sums.answered_ahead += pacer->counters().ahead;
    }
    if (const auto* builder = unit.builder()) {
        const auto& counted = builder->counters();
        const Deliveries meps = delivered(counted);
        sums.meps_built += meps.built;
        sums.meps_incomplete += meps.incomplete;
        sums.bytes_built += counted.built_bytes + counted.incomplete_bytes;
        sums.meps_discarded += counted.discarded;
    }
    const auto ignored = unit.ignored();
    sums.unexpected += ignored.messages + ignored.writes + ignored.others;
}

ShiftReport ShiftSystem::report() const { return base::since(sums(), before_); }

}  // namespace daqloom::systems

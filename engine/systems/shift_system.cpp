#include "systems/shift_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace daqloom::systems {

using base::Time;
using namespace protocol;

namespace {

std::uint64_t number_of(MepId mep) { return static_cast<std::uint64_t>(mep); }

/// Of the cables of some hosts: what bounds a write between any two of them.
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

struct ShiftSystem::CardsOut {
    ShiftSystem& system;

    void set_card_timer(std::uint32_t stream, Time at) {
        system.nodes().events().push({at, kCard, stream});
    }
};

/// The world of the unit on a node; see ShiftWorld.
struct ShiftSystem::World {
    ShiftSystem& system;
    std::uint32_t node;
    Time now;

    [[nodiscard]] ReadoutIndex self() const { return system.placement_.readouts.unit_on[node]; }

    void send(ReadoutIndex to, const UnitMessage& message) {
        send(system.placement_.readouts.node_of[to], message);
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        send(system.placement_.builders.node_of[to], message);
    }
    void send(std::uint32_t to, const UnitMessage& message) {
        system.nodes().send({.from = node,
                             .to = to,
                             .bytes = message_bytes(system.config_.control_bytes, message),
                             .content = ShiftNote::of(message)},
                            now);
    }
    /// Units are late for phases and windows, by some jitter.
    void set_timer(Time at, UnitTimer timer) {
        using What = UnitTimer::What;
        if (timer.what == What::go) {
            system.push(std::max(now, at), kGo, node, node);
            return;
        }
        if (timer.what == What::window) {
            at = std::max(now, system.nodes().clock(node).global(at));
        }
        if (timer.begins_phase()) {
            at += system.config_.phase_jitter.draw(system.jitter_);
        }
        const auto kind = static_cast<std::uint32_t>(timer.what) -
                          static_cast<std::uint32_t>(What::phase) + kPhase;
        system.push(at, kind, self().value(), node);
    }

    // ---- of a readout unit

    void admitted(StreamIndex stream, MepId mep, base::Bytes) {
        const std::uint32_t index = system.stream_number(node, stream);
        if (system.run_) {
            Stream& here = system.streams_[index];
            if (system.first_mep_ + number_of(mep) < here.taken) {
                return;  // in an earlier epoch
            }
            ++here.taken;
        }
        system.taken_from_card(index, now);
    }
    void write(const PushWrite& write) {
        system.nodes().send(
            {.from = node,
             .to = system.placement_.builders.node_of[write.builder],
             .bytes = write.bytes,
             .is_data = true,
             .completes = true,
             .content = {.number = number_of(write.mep), .round = write.stream.value()}},
            now);
    }
    void acknowledge(StreamIndex stream, MepId) {
        const Time after = system.config_.source_acknowledge.draw(system.acknowledge_);
        const std::uint32_t index = system.stream_number(node, stream);
        if (system.run_) {
            system.streams_[index].kept.pop_front();
            ++system.streams_[index].first;
        }
        system.push(now + after, kFreed, index, node);
    }
    void enter_barrier(std::uint64_t generation) {
        Group& group = system.group_of(self());
        if (++system.gathering(self(), generation).waiting == group.units.size()) {
            group.generation = generation;
            system.push(now, kReleased, system.released(self(), generation), node);
        }
    }
    void stage(std::uint64_t step, ShiftStage stage) {
        system.enter_stage(self(), step, stage, now);
    }

    // ---- of a builder unit

    void answered(MepId mep, bool) {
        if (system.run_) {
            std::uint64_t& next = system.seats_[node].counted.next_mep;
            next = std::max(next, system.first_mep_ + number_of(mep) + 1);
        }
    }
    void deliver(MepId mep, base::Bytes, base::Bytes) {
        if (system.run_) {
            system.count_delivery(mep);
        }
        const std::uint32_t place = system.built_.put({node, mep});
        const Time after = system.config_.processing.draw(system.processing_);
        system.push(now + after, kProcessed, place, node);
    }
};

protocol::ShiftUnitConfig unit_config(const ShiftSystemConfig& config, const LinearShift& shift,
                                      base::BitRate slowest) {
    auto unit = protocol::ShiftUnitConfig::sized(config, shift, config.streams);
    const auto sizes = config.is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
    protocol::PushReadoutConfig& readout = unit.readout;
    if (config.buffered_mfps > 0) {
        readout.buffered_mfps = config.buffered_mfps;
    }
    readout.stream_buffer = config.stream_buffer;
    readout.largest_mfp = protocol::largest_mfp(sizes, *std::ranges::max_element(config.mfp_bytes));
    readout.write_rate = slowest;
    unit.builder.output_buffer = config.output_buffer;
    unit.builder.usual_mep =
        std::accumulate(config.mfp_bytes.begin(), config.mfp_bytes.end(), base::Bytes{0});
    return unit;
}

ShiftSystem::ShiftSystem(const ShiftSystemConfig& config)
    : config_(config),
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
        return make_run();
    }
    for (const std::uint32_t node : placement_.readouts.node_of) {
        World world{*this, node, Time::zero()};
        units_[node].on_start(Time::zero(), Time::zero(), world);
    }
    start_flows();
    return {};
}

/// Units and nodes in the order of the slots; of each, the readout unit's node comes first.
base::expected<LinearShift> ShiftSystem::place_units() {
    const auto& builder_slots =
        config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
    if (builder_slots.size() != config_.slots.size()) {
        return base::failure(
            fmt::format("{} slots of readout and {} of builder units; give as many",
                        config_.slots.size(), builder_slots.size()));
    }
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
    readouts_in_run_ = placement_.readouts;
    hosts_ = placement_.hosts;
    seats_.resize(hosts_.size());
    DAQLOOM_CHECK(place(config_, placement_.hosts, kFlowDue));
    slowest_rate_ = slowest_rate(graph_of(config_), placement_.hosts);
    return LinearShift::make(std::move(readout_in), std::move(builder_in));
}

base::expected<void> ShiftSystem::make_units(const LinearShift& shift) {
    const std::uint32_t units = shift.readouts();
    doing_.resize(units);
    if (config_.streams < 1 || config_.streams > kMostStreams ||
        config_.mfp_bytes.size() != std::size_t{units} * config_.streams) {
        return base::failure(fmt::format(
            "{} units with {} streams and {} sizes of MFPs; expected 1 to {} streams, and a size "
            "for each",
            units, config_.streams, config_.mfp_bytes.size(), kMostStreams));
    }
    const std::uint64_t mfps =
        std::uint64_t{units} * shift.builders() * config_.streams * config_.meps_per_phase;
    if (config_.meps_per_phase > kMostMeps || mfps > kMostMfps) {
        return base::failure(fmt::format(
            "{} MEPs per phase are {} MFPs in a round; give at most {} MEPs and {} MFPs",
            config_.meps_per_phase, mfps, kMostMeps, kMostMfps));
    }
    const auto sizes = config_.is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
    for (const base::Bytes bytes : config_.mfp_bytes) {
        base::RandomStream random(config_.seed, fmt::format("mfp {}", streams_.size()));
        streams_.push_back({{sizes, bytes, std::move(random)}, Time::zero()});
    }
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
    // Out of step, a unit is ahead by up to those between the last barriers of two rounds.
    const std::uint64_t ahead =
        config_.barrier_slack + (config_.leaves_step ? barriers_of_round(config_, shift) - 1 : 0);
    std::map<std::uint32_t, std::uint32_t> number_of;
    for (const ReadoutIndex each : doing_.indices()) {
        const ReadoutIndex in_run = readouts_in_run_.unit_on[placement_.readouts.node_of[each]];
        const std::uint32_t given =
            config_.barrier_groups.empty() ? 0 : config_.barrier_groups[in_run.value()];
        const auto [found, is_new] =
            number_of.emplace(given, static_cast<std::uint32_t>(groups_.size()));
        if (is_new) {
            groups_.emplace_back().gatherings.resize(2 * ahead + 2);
        }
        group_of_.push_back(found->second);
        group_of(each).units.push_back(each);
    }
}

/// Of a card's buffer, the time in which its stream fills it.
base::expected<void> ShiftSystem::place_cards() {
    if (config_.card_buffer > 0 && config_.mfp_interval <= Time::zero()) {
        return base::failure(std::string("cards with a buffer, and no rate at which it fills"));
    }
    std::vector<Time> room;
    for (const base::Bytes mfp : config_.mfp_bytes) {
        const double mfps = static_cast<double>(config_.card_buffer) / static_cast<double>(mfp);
        room.push_back(config_.card_buffer > 0 && mfp > 0
                           ? Time::from_seconds(mfps * config_.mfp_interval.seconds())
                           : Time::never());
    }
    for (std::size_t unit = 0; unit < doing_.size(); ++unit) {
        card_delays_.push_back({config_.seed, fmt::format("card acknowledge {}", unit)});
    }
    cards_ = protocol::ReadoutCards(config_.mfp_interval, room);
    CardsOut out{*this};
    cards_.on_start(Time::zero(), out);
    return {};
}

void ShiftSystem::taken_from_card(std::uint32_t index, Time now) {
    const ReadoutIndex unit = unit_of(index);
    CardsOut out{*this};
    cards_.on_taken(index, now, out);
    if (cards_.is_limited(index)) {
        Time& knows = streams_[index].card_knows;
        knows = std::max(knows, now + config_.card_acknowledge.draw(card_delays_[unit]));
        for (const CardStop& stop : config_.card_stops) {
            knows = stop.unit == unit && stop.begin <= knows && knows < stop.end ? stop.end : knows;
        }
        if (knows < base::Time::never()) {
            nodes().events().push({knows, kCardKnows, index});
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
        case kCardKnows:
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
            const Built built = built_[event.index];
            built_.release(event.index);
            World world{*this, built.node, now};
            units_[built.node].on_consumed(built.mep, world);
            break;
        }
        case kReleased:
            release_all(groups_[event.index % groups_.size()], now);
            break;
        case kWarm:
            begin_counting(config_, now);
            if (config_.warmup > Time::zero()) {  // else all counts, from the first instant on
                before_ = sums();
            }
            break;
        case kFlowDue:
            on_flow_due(event);
            break;
        case kOfEpoch:
            on_event_of_epoch(event.index, now);
            break;
        case kControl:
            run_->on_due(event.index, now);
            break;
        default:
            break;
    }
}

void ShiftSystem::on_letter(const Letter& letter, Time now) {
    if (!has_unit(letter.to)) [[unlikely]] {
        seats_[letter.to].early.push_back(letter);
        return;
    }
    const UnitMessage said = letter.content.message();
    const ReadoutIndex from = placement_.readouts.unit_on[letter.from];
    World world{*this, letter.to, now};
    if (letter.is_data) {
        ++seats_[letter.to].received;
        units_[letter.to].on_written(from, StreamIndex(said.round), MepId{said.number}, now, world);
    } else if (!units_[letter.to].on_message(from, placement_.builders.unit_on[letter.from], said,
                                             now, world)) {
        ++counted_.unexpected;
    }
    tell_run(letter.to, now);
}

void ShiftSystem::on_written(const Letter& letter, Time now) {
    ++counted_.mfps_written;
    counted_.bytes_written += letter.bytes;
    World world{*this, letter.from, now};
    units_[letter.from].on_write_done(MepId{letter.content.number},
                                      StreamIndex(letter.content.round), now, world);
    tell_run(letter.from, now);
}

void ShiftSystem::enter_stage(ReadoutIndex unit, std::uint64_t step, ShiftStage stage, Time now) {
    leave_stage(unit, step, now);
    doing_[unit] = {stage, now};
    if (stage == ShiftStage::in_barrier && gathers()) {
        gathering(unit, (step + 1) / config_.phases_per_barrier - 1).last = now;
    }
    if (recording_) {
        stages_.push_back({now, step, unit, stage});
    }
}

void ShiftSystem::leave_stage(ReadoutIndex unit, std::uint64_t step, Time now) {
    const Time spent = now - doing_[unit].since;
    switch (doing_[unit].stage) {
        case ShiftStage::entering:
            counted_.entering += spent;
            break;
        case ShiftStage::asking:
            counted_.asking += spent;
            break;
        case ShiftStage::sending:
            counted_.sending += spent;
            break;
        case ShiftStage::idle:
            counted_.idle += spent;
            break;
        case ShiftStage::finished:
            break;
        case ShiftStage::in_barrier: {
            counted_.in_barrier += spent;
            const std::uint64_t reached = step / config_.phases_per_barrier;
            if (!gathers() || reached <= config_.barrier_slack) {
                break;
            }
            Gathering& here = gathering(unit, reached - 1 - config_.barrier_slack);
            const Time since = std::max(doing_[unit].since, here.last);
            here.waiting_for_slowest += since - doing_[unit].since;
            here.releasing += now - since;
            if (++here.released == group_of(unit).units.size()) {
                counted_.waiting_for_slowest += here.waiting_for_slowest;
                counted_.releasing += here.releasing;
                ++counted_.barriers;
                here = {};
            }
            break;
        }
    }
}

void ShiftSystem::release_all(Group& group, Time now) {
    group.gatherings[group.generation % group.gatherings.size()].waiting = 0;
    for (const ReadoutIndex unit : group.units) {
        World world{*this, placement_.readouts.node_of[unit], now};
        if (has_unit(world.node)) {
            units_[world.node].on_released(group.generation, now, world);
        }
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

// ---- where units regroup ------------------------------------------------------------------------

base::expected<void> ShiftSystem::make_run() {
    if (!std::holds_alternative<transport::RdmaConfig>(config_.transport) ||
        config_.card_buffer > 0 || !config_.flows.empty()) {
        return base::failure(std::string(
            "units regroup over RDMA only, with cards without limit and without flows"));
    }
    RunPlan plan = *config_.run;
    plan.units = static_cast<std::uint32_t>(hosts_.size());
    plan.takes_turns = true;
    plan.builders.clear();
    plan.readouts.clear();
    for (const std::uint32_t node : placement_.builders.node_of) {
        plan.builders.emplace_back(node);
    }
    for (const std::uint32_t node : placement_.readouts.node_of) {
        plan.readouts.emplace(node);
    }
    ControlledUnits& units = *this;
    run_ = std::make_unique<RunDriver>(plan, config_.launch, units);
    run_->begin(Time::zero());
    return {};
}

void ShiftSystem::push(Time at, std::uint32_t kind, std::uint32_t index, std::uint32_t node) {
    if (run_) [[unlikely]] {
        index = pending_.put({node, seats_[node].epoch, kind, index});
        kind = kOfEpoch;
    }
    nodes().events().push({at, kind, index});
}

void ShiftSystem::on_event_of_epoch(std::uint32_t place, Time now) {
    const Pending due = pending_[place];
    pending_.release(place);
    if (due.epoch == seats_[due.node].epoch) {
        on_event({now, due.kind, due.index});
        tell_run(due.node, now);
    } else if (due.kind == kProcessed) {
        built_.release(due.index);
    }
}

void ShiftSystem::call_back(Time at, std::uint32_t number) {
    nodes().events().push({at, kControl, number});
}

Time ShiftSystem::stopped_until(UnitIndex unit) const {
    return nodes().stopped_until(unit.value());
}

void ShiftSystem::prepare(UnitIndex unit, std::uint32_t epoch,
                          const std::vector<UnitIndex>& members, Time now) {
    if (epoch < epoch_) {
        return;  // it was stopped, and the others have gone on
    }
    if (epoch > epoch_) {
        epoch_ = epoch;
        place_epoch(members, now);
    }
    seats_[unit.value()].epoch = epoch;
    nodes().enter(unit.value(), static_cast<std::uint16_t>(1 + epoch % 65'535), now);
}

/// From here on no unit of an earlier epoch takes part in anything.
void ShiftSystem::place_epoch(const std::vector<UnitIndex>& members, Time now) {
    for (std::uint32_t node = 0; node < hosts_.size(); ++node) {
        retire(node);
        nodes().leave(node);
    }
    const auto is_member = [&](std::uint32_t node) {
        return std::ranges::find(members, UnitIndex(node)) != members.end();
    };
    const auto& builder_slots =
        config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
    placement_.readouts = {{}, std::vector(hosts_.size(), ReadoutIndex::none())};
    placement_.builders = {{}, std::vector(hosts_.size(), BuilderIndex::none())};
    std::vector<LinearShift::Member> slots;
    for (std::size_t slot = 0; slot < config_.slots.size(); ++slot) {
        const NodeIndex reads = config_.slots[slot];
        const NodeIndex builds = builder_slots[slot];
        LinearShift::Member here{false, false};
        if (reads != NodeIndex::none() && is_member(placement_.node_at.at(reads))) {
            placement_.readouts.add(placement_.node_at.at(reads));
            here.has_readout = true;
        }
        if (builds != NodeIndex::none() && is_member(placement_.node_at.at(builds))) {
            placement_.builders.add(placement_.node_at.at(builds));
            here.has_builder = true;
        }
        const bool never_had_one = reads == NodeIndex::none() && builds == NodeIndex::none();
        if (config_.keeps_lost_slots || never_had_one || here.has_readout || here.has_builder) {
            slots.push_back(here);
        }
    }
    shift_ = std::move(LinearShift::of_members(slots, true).value());  // fewer than at first
    doing_.assign(shift_->readouts(), {ShiftStage::finished, now});
    groups_.clear();
    group_of_.resize(0);
    make_groups(*shift_);
}

/// Rounds of time windows follow each other from the beginning of the run on, by each node's clock.
void ShiftSystem::start(UnitIndex unit, std::uint64_t first_mep, std::uint64_t mep_end, Time now) {
    const std::uint32_t node = unit.value();
    if (seats_[node].epoch != epoch_) {
        return;
    }
    first_mep_ = first_mep;
    auto config = unit_config(config_, *shift_, slowest_rate_);
    config.self = placement_.readouts.unit_on[node];
    config.builder.self = placement_.builders.unit_on[node];
    config.barrier_groups.clear();
    for (const std::uint32_t each : placement_.readouts.node_of) {
        const ReadoutIndex in_run = readouts_in_run_.unit_on[each];
        if (in_run.value() < config_.barrier_groups.size()) {
            config.barrier_groups.push_back(config_.barrier_groups[in_run.value()]);
        }
    }
    units_[node] = std::move(ShiftUnit::make(config, *shift_).value());  // as for all, but fewer
    seats_[node].has_unit = true;
    World world{*this, node, now};
    units_[node].on_lease(in_epoch(mep_end), world);
    if (config.self != ReadoutIndex::none()) {
        const Time round = config_.window * shift_->phases();
        const Time here = std::max(nodes().clock(node).local(now), Time::zero());
        const std::int64_t rounds = round.ps > 0 ? (here.ps + round.ps - 1) / round.ps : 0;
        units_[node].on_start(round * rounds, now, world);
        for (std::uint32_t stream = 0; stream < config_.streams; ++stream) {
            const std::uint32_t index = stream_number(node, StreamIndex(stream));
            streams_[index].offered = first_mep;
            feed(index, now);
        }
    }
    for (const Letter& letter : std::exchange(seats_[node].early, {})) {
        on_letter(letter, now);
    }
}

void ShiftSystem::lease(UnitIndex unit, std::uint64_t mep_end, Time now) {
    if (has_unit(unit.value())) {
        World world{*this, unit.value(), now};
        units_[unit.value()].on_lease(in_epoch(mep_end), world);
    }
}

void ShiftSystem::close(UnitIndex unit, std::span<const UnitIndex> lost, Time now) {
    if (!has_unit(unit.value())) {
        return;  // as in prepare
    }
    std::vector<ReadoutIndex> readouts;
    std::vector<BuilderIndex> builders;
    for (const UnitIndex each : lost) {
        if (const auto reads = placement_.readouts.unit_on[each.value()];
            reads != ReadoutIndex::none()) {
            readouts.push_back(reads);
        }
        if (const auto builds = placement_.builders.unit_on[each.value()];
            builds != BuilderIndex::none()) {
            builders.push_back(builds);
        }
    }
    World world{*this, unit.value(), now};
    units_[unit.value()].on_close(readouts, builders, now, world);
}

bool ShiftSystem::is_drained(UnitIndex unit) const {
    return !has_unit(unit.value()) || units_[unit.value()].is_drained();
}

std::uint64_t ShiftSystem::end(UnitIndex unit, Time now) {
    if (!has_unit(unit.value())) {
        return 0;
    }
    World world{*this, unit.value(), now};
    units_[unit.value()].on_end(0, world);
    const std::uint64_t next_mep = first_mep_ + units_[unit.value()].next_mep();
    std::uint64_t& counted = seats_[unit.value()].counted.next_mep;
    counted = std::max(counted, next_mep);
    return next_mep;
}

void ShiftSystem::shut(UnitIndex unit, Time now) {
    retire(unit.value());
    nodes().enter(unit.value(), 0, now);
    nodes().restart(unit.value(), now);
}

UnitCounts ShiftSystem::counts(UnitIndex unit) const {
    const Seat& seat = seats_[unit.value()];
    UnitCounts all = seat.counted;
    if (!seat.has_unit) {
        return all;
    }
    const protocol::ShiftUnit& here = units_[unit.value()];
    if (const auto* builder = here.builder()) {
        const auto& counted = builder->counters();
        all.granted += static_cast<std::int64_t>(counted.granted);
        all.built += static_cast<std::int64_t>(counted.built);
        all.incomplete += static_cast<std::int64_t>(counted.incomplete);
        all.dropped += static_cast<std::int64_t>(counted.dropped);
        all.discarded += static_cast<std::int64_t>(counted.discarded);
        all.steps += counted.mfps + counted.built;
    }
    if (const auto* readout = here.readout()) {
        all.steps += readout->counters().writes;
    }
    return all;
}

/// In the turn of its builder unit, it has nothing to write and nothing to hear.
bool ShiftSystem::waits(UnitIndex unit) const {
    const ReadoutIndex self = placement_.readouts.unit_on[unit.value()];
    if (!has_unit(unit.value()) || self == ReadoutIndex::none() ||
        doing_[self].stage != ShiftStage::sending) {
        return false;
    }
    const auto& readout = *units_[unit.value()].readout();
    const auto& counted = readout.counters();
    return readout.writes_under_way() == 0 &&
           counted.announced <= counted.granted + counted.discarded;
}

void ShiftSystem::on_unreachable(const Letter& letter, Time /*now*/) {
    run_->on_unreachable(UnitIndex(letter.from), UnitIndex(letter.to));
}

void ShiftSystem::on_killed(std::uint32_t node, Time now) { run_->kill(UnitIndex(node), now); }

void ShiftSystem::retire(std::uint32_t node) {
    Seat& seat = seats_[node];
    if (seat.has_unit) {
        add(units_[node], counted_);
        seat.counted = counts(UnitIndex(node));
    }
    seat.has_unit = false;
    seat.epoch = 0;
    seat.early.clear();
}

void ShiftSystem::feed(std::uint32_t stream, Time now) {
    const std::uint32_t node = node_of_stream(stream);
    if (!has_unit(node)) {
        return;
    }
    skip_to(first_mep_, stream, now);
    World world{*this, node, now};
    Stream& here = streams_[stream];
    while (here.offered < here.first + here.kept.size() &&
           units_[node].readout()->takes_more(stream_of(stream))) {
        const base::Bytes bytes = here.kept[here.offered++ - here.first];
        units_[node].on_data(stream_of(stream), bytes, world);
    }
}

void ShiftSystem::skip_to(std::uint64_t mfp, std::uint32_t stream, Time now) {
    Stream& here = streams_[stream];
    for (; here.first < mfp && !here.kept.empty(); ++here.first) {
        here.kept.pop_front();
        if (here.first == here.taken) {
            ++here.taken;
            taken_from_card(stream, now);
        }
    }
}

void ShiftSystem::count_delivery(MepId mep) {
    const std::uint64_t number = first_mep_ + number_of(mep);
    if (number >= delivered_.size()) {
        delivered_.resize(number + 1);
    }
    twice_ += delivered_[number] ? 1 : 0;
    delivered_[number] = true;
}

/// Inputs that came too late, or from lost units, are ignored where units regroup.
base::expected<void> ShiftSystem::check_conservation() const {
    if (!run_) {
        return check_books(sums().unexpected);
    }
    DAQLOOM_CHECK(check_books());
    const RunDriver::Accounts all = run_->accounts();
    const std::int64_t fates = all.built + all.incomplete + all.dropped + all.discarded +
                               all.unfinished + all.skipped + all.in_flight;
    const auto delivered = std::ranges::count(delivered_, true);
    if (fates != all.begun || all.twice != 0 || twice_ != 0 ||
        delivered != all.built + all.incomplete) {
        return base::defect(fmt::format(
            "{} MEPs begun, {} fates, {} finished twice; {} delivered, {} twice, of {} built and "
            "{} incomplete",
            all.begun, fates, all.twice, delivered, twice_, all.built, all.incomplete));
    }
    return {};
}

void ShiftSystem::add(const protocol::ShiftUnit& unit, ShiftReport& sums) {
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
        sums.meps_built += builder->counters().built;
        sums.bytes_built += builder->counters().built_bytes;
        sums.meps_discarded += builder->counters().discarded;
    }
    const auto ignored = unit.ignored();
    sums.unexpected += ignored.messages + ignored.writes + ignored.others;
}

ShiftReport ShiftSystem::report() const { return base::since(sums(), before_); }

}  // namespace daqloom::systems

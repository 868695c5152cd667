#include "systems/shift_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

namespace daqloom::systems {

using base::Time;
using protocol::BarrierMessage;
using protocol::BuilderIndex;
using protocol::FragmentSizes;
using protocol::LinearShift;
using protocol::MepId;
using protocol::Participant;
using protocol::PushWrite;
using protocol::ReadoutIndex;
using protocol::ShiftStage;
using protocol::SlotIndex;
using protocol::StreamIndex;
using protocol::UnitMessage;
using Kind = UnitMessage::Kind;

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

struct ShiftSystem::UnitOut {
    ShiftSystem& system;
    Time now;

    [[nodiscard]] std::uint32_t node_of(ReadoutIndex readout) const {
        return system.readout_places_.node_of[readout];
    }
    [[nodiscard]] std::uint32_t node_of(BuilderIndex builder) const {
        return system.builder_places_.node_of[builder];
    }
    void send(std::uint32_t from, std::uint32_t to, const UnitMessage& message) {
        system.nodes().send(
            {.from = from,
             .to = to,
             .bytes = system.config_.control_bytes +
                      kOffsetBytes * static_cast<base::Bytes>(message.values.size()),
             .content = ShiftNote::of(message)},
            now);
    }
};

struct ShiftSystem::ReadoutOut : UnitOut {
    ReadoutIndex self;

    void admitted(StreamIndex stream, MepId, base::Bytes) {
        system.taken_from_card(self, stream, now);
    }
    void announce(BuilderIndex builder, MepId mep, std::span<const base::Bytes> sizes) {
        send(node_of(self), node_of(builder), {Kind::announce, 0, number_of(mep), sizes});
    }
    void write(const PushWrite& write) {
        system.nodes().send(
            {.from = node_of(self),
             .to = node_of(write.builder),
             .bytes = write.bytes,
             .is_data = true,
             .completes = true,
             .content = {.number = number_of(write.mep), .round = write.stream.value()}},
            now);
    }
    void acknowledge(StreamIndex stream, MepId) {
        const Time after = system.config_.source_acknowledge.draw(system.acknowledge_);
        system.nodes().events().push({now + after, kFreed, system.stream_number(self, stream)});
    }

    // ---- under linear shifting

    void send_barrier(Participant participant, BarrierMessage message) {
        send(node_of(self), node_of(ReadoutIndex(participant)),
             {Kind::barrier, message.round, message.generation, {}});
    }
    void enter_barrier(std::uint64_t generation) {
        if (++system.gathering(generation).waiting == system.units_.size()) {
            system.nodes().events().push({now, kReleased, static_cast<std::uint32_t>(generation)});
        }
    }
    void phase_ready(std::uint64_t) {
        const Time after = system.config_.phase_jitter.draw(system.jitter_);
        system.nodes().events().push({now + after, kPhase, self.value()});
    }
    void idle_for(Time length) {
        system.nodes().events().push({now + length, kIdleOver, self.value()});
    }
    void set_timer(Time at) {
        const Time after = system.config_.phase_jitter.draw(system.jitter_);
        system.nodes().events().push(
            {std::max(now, system.nodes().clock(node_of(self)).global(at)) + after, kTimer,
             self.value()});
    }
    void stage(std::uint64_t step, ShiftStage stage) { system.enter_stage(self, step, stage, now); }
};

struct ShiftSystem::BuilderOut : UnitOut {
    BuilderIndex self;

    void grant(ReadoutIndex readout, MepId mep, std::span<const base::Bytes> offsets) {
        send(node_of(self), node_of(readout), {Kind::grant, 0, number_of(mep), offsets});
    }
    void discard(ReadoutIndex readout, MepId mep) {
        send(node_of(self), node_of(readout), {Kind::discard, 0, number_of(mep), {}});
    }
    void built(MepId mep, base::Bytes, base::Bytes) {
        const std::uint32_t place = system.built_.put({self, mep});
        const Time after = system.config_.processing.draw(system.processing_);
        system.nodes().events().push({now + after, kProcessed, place});
    }
};

ShiftSystem::ShiftSystem(const ShiftSystemConfig& config)
    : config_(config),
      jitter_(config.seed, "phase jitter"),
      processing_(config.seed, "processing"),
      acknowledge_(config.seed, "source acknowledge") {}

base::expected<std::unique_ptr<ShiftSystem>> ShiftSystem::make(const ShiftSystemConfig& config) {
    std::unique_ptr<ShiftSystem> system(new ShiftSystem(config));
    if (auto built = system->build(); !built) {
        return tl::unexpected(built.error());
    }
    return system;
}

base::expected<void> ShiftSystem::build() {
    auto shift = place_units();
    if (!shift) {
        return tl::unexpected(shift.error());
    }
    if (auto made = make_units(*shift); !made) {
        return made;
    }
    if (auto placed = place_cards(); !placed) {
        return placed;
    }
    nodes().events().push({config_.warmup, kWarm, 0});
    for (const ReadoutIndex unit : units_.indices()) {
        ReadoutOut out{{*this, Time::zero()}, unit};
        units_[unit].on_start(Time::zero(), out);
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
    std::vector<NodeIndex> hosts;
    for (std::size_t slot = 0; slot < config_.slots.size(); ++slot) {
        const NodeIndex reads = config_.slots[slot];
        const NodeIndex builds = builder_slots[slot];
        readout_in.push_back(ReadoutIndex::none());
        builder_in.push_back(BuilderIndex::none());
        if (reads != NodeIndex::none()) {
            hosts.push_back(reads);
            readout_in.back() = readout_places_.add(static_cast<std::uint32_t>(hosts.size() - 1));
        }
        if (builds != NodeIndex::none()) {
            if (builds != reads) {
                hosts.push_back(builds);
            }
            builder_in.back() = builder_places_.add(static_cast<std::uint32_t>(hosts.size() - 1));
        }
    }
    if (auto placed = place(config_, hosts, kFlowDue); !placed) {
        return tl::unexpected(placed.error());
    }
    slowest_rate_ = slowest_rate(graph_of(config_), hosts);
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
    const base::Bytes largest = *std::ranges::max_element(config_.mfp_bytes);
    const std::uint32_t round = config_.meps_per_phase * shift.builders();
    protocol::ShiftUnitConfig unit{{config_}};
    unit.readout.streams = config_.streams;
    unit.readout.builders = shift.builders();
    unit.readout.buffered_mfps = config_.buffered_mfps == 0 ? 2 * round : config_.buffered_mfps;
    unit.readout.stream_buffer = config_.stream_buffer;
    unit.readout.largest_mfp = protocol::largest_mfp(sizes, largest);
    unit.readout.announced_meps = config_.meps_per_phase;
    unit.readout.write_rate = slowest_rate_;
    protocol::PushBuilderConfig builder;
    builder.builders = shift.builders();
    builder.streams.assign(units, config_.streams);
    builder.concurrent_meps = 2 * config_.meps_per_phase;  // of this round and of the next
    builder.announced_meps = config_.meps_per_phase;
    builder.output_buffer = config_.output_buffer;
    builder.usual_mep =
        std::accumulate(config_.mfp_bytes.begin(), config_.mfp_bytes.end(), base::Bytes{0});
    for (; unit.self.value() < units; ++unit.self) {
        auto made = protocol::ShiftUnit::make(unit, shift);
        if (!made) {
            return tl::unexpected(made.error());
        }
        units_.push_back(std::move(*made));
        for (std::uint32_t s = 0; s < config_.streams; ++s) {
            const auto index = static_cast<std::uint32_t>(streams_.size());
            base::RandomStream random(config_.seed, fmt::format("mfp {}", index));
            streams_.push_back(
                {{sizes, config_.mfp_bytes[index], std::move(random)}, Time::zero()});
        }
    }
    for (; builder.self.value() < builder.builders; ++builder.self) {
        auto made = protocol::PushBuilder::make(builder);
        if (!made) {
            return tl::unexpected(made.error());
        }
        builders_.push_back(std::move(*made));
    }
    return {};
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
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
        card_delays_.push_back({config_.seed, fmt::format("card acknowledge {}", unit)});
    }
    cards_ = protocol::ReadoutCards(config_.mfp_interval, room);
    CardsOut out{*this};
    cards_.on_start(Time::zero(), out);
    return {};
}

void ShiftSystem::taken_from_card(ReadoutIndex unit, StreamIndex stream, Time now) {
    const std::uint32_t index = stream_number(unit, stream);
    CardsOut out{*this};
    cards_.on_taken(index, now, out);
    if (cards_.is_limited(index)) {
        Time& knows = streams_[index].card_knows;
        knows = std::max(knows, now + config_.card_acknowledge.draw(card_delays_[unit]));
        nodes().events().push({knows, kCardKnows, index});
    }
}

void ShiftSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    CardsOut cards{*this};
    ReadoutOut out{{*this, now}, ReadoutIndex(event.index)};
    switch (event.kind) {
        case kPhase:
            units_[out.self].on_phase(now, out);
            break;
        case kIdleOver:
            units_[out.self].on_idle_over(now, out);
            break;
        case kTimer:
            units_[out.self].on_timer(nodes().clock(out.node_of(out.self)).local(now), out);
            break;
        case kCard:
            if (cards_.on_timer(event.index, now, cards)) {
                out.self = unit_of(event.index);
                units_[out.self].on_generated(stream_of(event.index),
                                              streams_[event.index].sizes.next(), out);
            }
            break;
        case kCardKnows:
            cards_.on_acknowledged(event.index, now, cards);
            break;
        case kFreed:
            out.self = unit_of(event.index);
            units_[out.self].on_acknowledged(stream_of(event.index), out);
            break;
        case kProcessed: {
            const Built built = built_[event.index];
            built_.release(event.index);
            BuilderOut builder{{*this, now}, built.builder};
            builders_[built.builder].on_processed(built.mep, builder);
            break;
        }
        case kReleased:
            release_all(event.index, now);
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
        default:
            break;
    }
}

void ShiftSystem::on_letter(const Letter& letter, Time now) {
    const UnitMessage said = letter.content.message();
    const MepId mep{said.number};
    if (letter.is_data || said.kind == Kind::announce) {  // to a builder unit
        BuilderOut out{{*this, now}, builder_places_.unit_on[letter.to]};
        const ReadoutIndex from = readout_places_.unit_on[letter.from];
        if (letter.is_data) {
            builders_[out.self].on_written(from, StreamIndex(said.round), mep, out);
        } else {
            builders_[out.self].on_sizes(from, mep, said.values, out);
        }
        return;
    }
    ReadoutOut out{{*this, now}, readout_places_.unit_on[letter.to]};
    if (said.kind == Kind::grant) {
        units_[out.self].on_grant(mep, said.values, now, out);
    } else if (said.kind == Kind::discard) {
        units_[out.self].on_discard(mep, now, out);
    } else {
        const Participant from = readout_places_.unit_on[letter.from].value();
        units_[out.self].on_barrier_message(from, {said.number, said.round}, out);
    }
}

void ShiftSystem::on_written(const Letter& letter, Time now) {
    ++counted_.mfps_written;
    counted_.bytes_written += letter.bytes;
    ReadoutOut out{{*this, now}, readout_places_.unit_on[letter.from]};
    units_[out.self].on_write_done(MepId{letter.content.number}, StreamIndex(letter.content.round),
                                   now, out);
}

void ShiftSystem::enter_stage(ReadoutIndex unit, std::uint64_t step, ShiftStage stage, Time now) {
    leave_stage(unit, step, now);
    doing_[unit] = {stage, now};
    if (stage == ShiftStage::in_barrier) {
        Gathering& here = gathering((step + 1) / config_.phases_per_barrier - 1);
        here.entries += now;
        here.last = now;
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
            Gathering& here = gathering(step / config_.phases_per_barrier - 1);
            here.releases += now;
            if (++here.released == units_.size()) {
                const Time all = here.last * static_cast<std::int64_t>(units_.size());
                counted_.waiting_for_slowest += all - here.entries;
                counted_.releasing += here.releases - all;
                ++counted_.barriers;
                here = {};
            }
            break;
        }
    }
}

/// Two generations at most are under way: nobody leaves one before all have entered it.
ShiftSystem::Gathering& ShiftSystem::gathering(std::uint64_t generation) {
    return gatherings_[generation % gatherings_.size()];
}

void ShiftSystem::release_all(std::uint64_t generation, Time now) {
    gathering(generation).waiting = 0;
    for (const ReadoutIndex unit : units_.indices()) {
        ReadoutOut out{{*this, now}, unit};
        units_[unit].on_released(generation, out);
    }
}

ShiftReport ShiftSystem::sums() const {
    ShiftReport all = counted_;
    all.window = now();
    all.stopped_for_acknowledge = cards_.stopped(now()).acknowledge;
    all.stopped_for_memory = cards_.stopped(now()).memory;
    all.processor = nodes().processor_used();
    all.control_messages = nodes().control_messages();
    for (const protocol::ShiftUnit& each : units_) {
        const auto& unit = each.counters();
        const auto& readout = each.readout().counters();
        all.mfps_blocked += readout.blocked;
        all.steps += unit.steps;
        all.idle_steps += unit.idle_steps;
        all.skipped_steps += unit.skipped_steps;
        all.writes_overran += readout.overran;
        all.unexpected += unit.unexpected + readout.unexpected_mfps + readout.unexpected_answers +
                          readout.unexpected_completions + readout.unexpected_acknowledgements;
    }
    for (const protocol::PushBuilder& each : builders_) {
        const auto& builder = each.counters();
        all.meps_built += builder.built;
        all.bytes_built += builder.built_bytes;
        all.meps_discarded += builder.discarded;
        all.unexpected +=
            builder.unexpected_sizes + builder.unexpected_mfps + builder.unexpected_processed;
    }
    return all;
}

ShiftReport ShiftSystem::report() const {
    ShiftReport after = sums();
    ShiftReport::each([&](const char*, auto member, const char*) {
        after.*member = static_cast<std::remove_reference_t<decltype(after.*member)>>(
            after.*member - before_.*member);
    });
    return after;
}

base::expected<void> ShiftSystem::check_conservation() const {
    if (auto books = check_books(); !books) {
        return books;
    }
    const ShiftReport all = sums();
    if (all.unexpected > 0) {
        return base::defect(
            fmt::format("{} inputs came to units that did not expect them", all.unexpected));
    }
    return {};
}

}  // namespace daqloom::systems

#include "infiniband/shift_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

namespace daqloom::infiniband {

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
using protocol::StreamIndex;

namespace {

/// Of the cables of some hosts: what bounds a write between any two of them.
base::BitRate slowest_rate(const FabricConfig& fabric, std::span<const NodeIndex> hosts) {
    base::BitRate slowest{std::numeric_limits<std::int64_t>::max()};
    for (const Cable& cable : fabric.cables) {
        for (const End end : {cable.a, cable.b}) {
            if (end.node < fabric.hosts && std::ranges::find(hosts, end.node) != hosts.end()) {
                slowest = std::min(slowest, cable.rate);
            }
        }
    }
    return slowest;
}

}  // namespace

struct ShiftSystem::Out {
    ShiftSystem& system;
    std::uint32_t unit;
    Time now;

    // A readout unit's.
    void admitted(StreamIndex stream, MepId, base::Bytes) {
        system.taken_from_card(unit * system.config_.streams + stream, now);
    }
    void announce(BuilderIndex builder, MepId mep, std::span<const base::Bytes> sizes) {
        tell_sizes(builder, Do::announce, mep, sizes);
    }
    void write(const PushWrite& write) {
        send(write.builder, {.what = Do::write, .mep = write.mep, .write = write}, write.bytes);
    }
    void acknowledge(StreamIndex stream, MepId) {
        const Time after = system.config_.source_acknowledge.draw(system.acknowledge_);
        system.cluster_->events().push(
            {now + after, kFreed, unit * system.config_.streams + stream});
    }

    // The cards'.
    void set_card_timer(std::uint32_t stream, Time at) {
        system.cluster_->events().push({at, kCard, stream});
    }

    // A unit's under linear shifting.
    void send_barrier(Participant participant, BarrierMessage message) {
        send(participant, {.what = Do::barrier, .barrier = message}, system.config_.control_bytes);
    }
    void enter_barrier(std::uint64_t generation) {
        if (++system.gathering(generation).waiting == system.units_.size()) {
            system.cluster_->events().push(
                {now, kReleased, static_cast<std::uint32_t>(generation)});
        }
    }
    void phase_ready(std::uint64_t) {
        const Time after = system.config_.phase_jitter.draw(system.jitter_);
        system.cluster_->events().push({now + after, kPhase, unit});
    }
    void idle_for(Time length) { system.cluster_->events().push({now + length, kIdleOver, unit}); }
    void set_timer(Time at) {
        const Time after = system.config_.phase_jitter.draw(system.jitter_);
        system.cluster_->events().push(
            {std::max(now, system.cluster_->clock(unit).global(at)) + after, kTimer, unit});
    }
    void stage(std::uint64_t step, ShiftStage stage) { system.enter_stage(unit, step, stage, now); }

    // A builder unit's.
    void grant(ReadoutIndex readout, MepId mep, std::span<const base::Bytes> offsets) {
        tell_sizes(readout, Do::grant, mep, offsets);
    }
    void discard(ReadoutIndex readout, MepId mep) {
        send(readout, {.what = Do::discard, .mep = mep}, system.config_.control_bytes);
    }
    void built(MepId mep, base::Bytes, base::Bytes) {
        const std::uint32_t place = system.built_.put({unit, mep});
        const Time after = system.config_.processing.draw(system.processing_);
        system.cluster_->events().push({now + after, kProcessed, place});
    }

    void tell_sizes(std::uint32_t to, Do what, MepId mep, std::span<const base::Bytes> sizes) {
        Note note{.what = what, .mep = mep};
        std::ranges::copy(sizes, note.sizes.begin());
        send(to, note, system.config_.control_bytes + kOffsetBytes * system.config_.streams);
    }
    void send(std::uint32_t to, const Note& note, base::Bytes bytes) {
        system.cluster_->send({unit, to, bytes, note.what == Do::write, note}, now);
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
    std::vector<ReadoutIndex> in_slot;
    std::vector<NodeIndex> hosts;
    for (const NodeIndex host : config_.slots) {
        in_slot.push_back(host == LinearShift::nobody ? LinearShift::nobody
                                                      : static_cast<ReadoutIndex>(hosts.size()));
        if (host != LinearShift::nobody) {
            hosts.push_back(host);
        }
    }
    auto cluster = Nodes::make(config_, hosts);
    if (!cluster) {
        return tl::unexpected(cluster.error());
    }
    cluster_ = std::move(*cluster);
    const auto units = static_cast<std::uint32_t>(hosts.size());
    doing_.resize(units);
    if (units == 0 || config_.streams < 1 || config_.streams > kMostStreams ||
        config_.mfp_bytes.size() != std::size_t{units} * config_.streams) {
        return base::failure(fmt::format(
            "{} units with {} streams and {} sizes of MFPs; expected a unit at least, 1 to {} "
            "streams, and a size for each",
            units, config_.streams, config_.mfp_bytes.size(), kMostStreams));
    }
    auto shift = LinearShift::make(in_slot, in_slot);
    if (!shift) {
        return tl::unexpected(shift.error());
    }
    const auto sizes = config_.is_poissonian ? FragmentSizes::poisson : FragmentSizes::fixed;
    const base::Bytes largest = *std::ranges::max_element(config_.mfp_bytes);
    protocol::ShiftUnitConfig unit;
    unit.change = config_.change;
    unit.barrier = config_.barrier;
    unit.phases_per_barrier = config_.phases_per_barrier;
    unit.phases_under_way = config_.phases_under_way;
    unit.keeps_dummies = config_.keeps_dummies;
    unit.window = config_.window;
    unit.grace = config_.grace;
    unit.readout.streams = config_.streams;
    unit.readout.builders = units;
    unit.readout.buffered_mfps = config_.buffered_mfps == 0 ? 2 * units : config_.buffered_mfps;
    unit.readout.stream_buffer = config_.stream_buffer;
    unit.readout.largest_mfp = protocol::largest_mfp(sizes, largest);
    unit.readout.write_rate = slowest_rate(config_.fabric, hosts);
    protocol::PushBuilderConfig builder;
    builder.builders = units;
    builder.streams.assign(units, config_.streams);
    builder.output_buffer = config_.output_buffer;
    for (std::uint32_t i = 0; i < units; ++i) {
        unit.self = builder.self = i;
        auto made = protocol::ShiftUnit::make(unit, *shift);
        auto built = protocol::PushBuilder::make(builder);
        if (!made || !built) {
            return tl::unexpected(made ? built.error() : made.error());
        }
        units_.push_back(std::move(*made));
        builders_.push_back(std::move(*built));
        for (StreamIndex s = 0; s < config_.streams; ++s) {
            const auto index = static_cast<std::uint32_t>(streams_.size());
            base::RandomStream random(config_.seed, fmt::format("mfp {}", index));
            streams_.push_back(
                {{sizes, config_.mfp_bytes[index], std::move(random)}, Time::zero()});
        }
    }
    if (auto placed = place_cards(); !placed) {
        return placed;
    }
    cluster_->events().push({config_.warmup, kWarm, 0});
    for (std::uint32_t i = 0; i < units; ++i) {
        Out out{*this, i, Time::zero()};
        units_[i].on_start(Time::zero(), out);
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
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
        card_delays_.emplace_back(config_.seed, fmt::format("card acknowledge {}", unit));
    }
    cards_ = protocol::SourceCards(config_.mfp_interval, room);
    Out out{*this, 0, Time::zero()};
    cards_.on_start(Time::zero(), out);
    return {};
}

void ShiftSystem::taken_from_card(std::uint32_t index, Time now) {
    const std::uint32_t unit = index / config_.streams;
    Out out{*this, unit, now};
    cards_.on_taken(index, now, out);
    if (cards_.is_limited(index)) {
        Time& knows = streams_[index].card_knows;
        knows = std::max(knows, now + config_.card_acknowledge.draw(card_delays_[unit]));
        cluster_->events().push({knows, kCardKnows, index});
    }
}

void ShiftSystem::on_event(const sim::Event& event) {
    const Time now = event.at;
    Out out{*this, event.index, now};
    switch (event.kind) {
        case kPhase:
            units_[event.index].on_phase(now, out);
            break;
        case kIdleOver:
            units_[event.index].on_idle_over(now, out);
            break;
        case kTimer:
            units_[event.index].on_timer(cluster_->clock(event.index).local(now), out);
            break;
        case kCard:
            if (cards_.on_timer(event.index, now, out)) {
                out.unit = event.index / config_.streams;
                units_[out.unit].on_generated(event.index % config_.streams,
                                              streams_[event.index].sizes.next(), out);
            }
            break;
        case kCardKnows:
            cards_.on_acknowledged(event.index, now, out);
            break;
        case kFreed:
            out.unit = event.index / config_.streams;
            units_[out.unit].on_acknowledged(event.index % config_.streams, out);
            break;
        case kProcessed: {
            const Built built = built_[event.index];
            built_.release(event.index);
            out.unit = built.unit;
            builders_[built.unit].on_processed(built.mep, out);
            break;
        }
        case kReleased:
            release_all(event.index, now);
            break;
        case kWarm:
            before_ = sums();
            break;
        default:
            break;
    }
}

void ShiftSystem::on_letter(const Nodes::Letter& letter, Time now) {
    const Note& note = letter.content;
    Out out{*this, letter.to, now};
    const std::span<const base::Bytes> sizes(note.sizes.data(), config_.streams);
    switch (note.what) {
        case Do::announce:
            builders_[letter.to].on_sizes(letter.from, note.mep, sizes, out);
            break;
        case Do::grant:
            units_[letter.to].on_grant(note.mep, sizes, now, out);
            break;
        case Do::discard:
            units_[letter.to].on_discard(note.mep, now, out);
            break;
        case Do::barrier:
            units_[letter.to].on_barrier_message(letter.from, note.barrier, out);
            break;
        case Do::write:
            builders_[letter.to].on_written(letter.from, note.write.stream, note.mep, out);
            break;
    }
}

void ShiftSystem::on_written(const Nodes::Letter& letter, Time now) {
    ++counted_.mfps_written;
    counted_.bytes_written += letter.bytes;
    Out out{*this, letter.from, now};
    units_[letter.from].on_write_done(letter.content.mep, letter.content.write.stream, now, out);
}

void ShiftSystem::enter_stage(std::uint32_t unit, std::uint64_t step, ShiftStage stage, Time now) {
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

void ShiftSystem::leave_stage(std::uint32_t unit, std::uint64_t step, Time now) {
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
    for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
        Out out{*this, unit, now};
        units_[unit].on_released(generation, out);
    }
}

ShiftReport ShiftSystem::sums() const {
    ShiftReport all = counted_;
    all.window = now();
    all.stopped_for_acknowledge = cards_.stopped(now()).acknowledge;
    all.stopped_for_memory = cards_.stopped(now()).memory;
    all.processor = cluster_->processor_used();
    all.control_messages = cluster_->control_messages();
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
        const auto& unit = units_[i].counters();
        const auto& readout = units_[i].readout().counters();
        const auto& builder = builders_[i].counters();
        all.meps_built += builder.built;
        all.bytes_built += builder.built_bytes;
        all.meps_discarded += builder.discarded;
        all.mfps_blocked += readout.blocked;
        all.steps += unit.steps;
        all.idle_steps += unit.idle_steps;
        all.skipped_steps += unit.skipped_steps;
        all.writes_overran += readout.overran;
        all.unexpected += unit.unexpected + readout.unexpected_mfps + readout.unexpected_answers +
                          readout.unexpected_completions + readout.unexpected_acknowledgements +
                          builder.unexpected_sizes + builder.unexpected_mfps +
                          builder.unexpected_processed;
    }
    return all;
}

ShiftReport ShiftSystem::report() const {
    ShiftReport after = sums();
    ShiftReport::each([&](const char*, auto member) {
        after.*member = static_cast<std::remove_reference_t<decltype(after.*member)>>(
            after.*member - before_.*member);
    });
    return after;
}

base::expected<void> ShiftSystem::check_conservation() const {
    if (auto books = cluster_->check_conservation(); !books) {
        return books;
    }
    const ShiftReport all = sums();
    if (all.unexpected > 0) {
        return base::failure(
            fmt::format("{} inputs came to units that did not expect them", all.unexpected));
    }
    return {};
}

}  // namespace daqloom::infiniband

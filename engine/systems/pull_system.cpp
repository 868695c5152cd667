#include "systems/pull_system.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;
using protocol::EventId;
using protocol::ReadoutIndex;

namespace {

EventId id_of(std::uint64_t event) { return static_cast<EventId>(event); }
std::uint64_t number_of(EventId event) { return static_cast<std::uint64_t>(event); }

}  // namespace

struct PullSystem::ManagerOut {
    PullSystem& system;
    Time now;

    void assign(EventId event, BuilderIndex builder) const {
        system.begin(number_of(event), builder, now);
    }
};

struct PullSystem::BuilderOut {
    PullSystem& system;
    BuilderIndex self;
    Time now;

    void request(EventId event, ReadoutIndex readout) const {
        const ReadoutIndex last(system.placement_.readout_node.size() - 1);
        const ReadoutIndex soon = std::min(readout + 4, last);
        system.nodes().expect(system.placement_.builder_node[self],
                              system.placement_.readout_node[soon]);
        system.nodes().send({.from = system.placement_.builder_node[self],
                             .to = system.placement_.readout_node[readout],
                             .bytes = system.config_.request_size,
                             .content = {number_of(event), readout, self}},
                            now);
    }
    void built(EventId event) const { system.finish(number_of(event), self, now); }
    void done(EventId /*event*/) const { system.done_builders_.push_back(self); }
};

struct PullSystem::ReadoutOut {
    PullSystem& system;
    ReadoutIndex self;
    Time now;

    void respond_after(Time delay, EventId event, BuilderIndex builder, Bytes bytes) const {
        const std::uint32_t slot = system.pending_.put({{number_of(event), self, builder}, bytes});
        system.nodes().events().push({now + delay, kResponse, slot});
    }
    void send_fragment(EventId event, BuilderIndex builder, Bytes bytes) const {
        system.nodes().send({.from = system.placement_.readout_node[self],
                             .to = system.placement_.builder_node[builder],
                             .bytes = bytes,
                             .is_data = true,
                             .content = {number_of(event), self, builder}},
                            now);
    }
};

base::expected<std::unique_ptr<PullSystem>> PullSystem::make(const PullSystemConfig& config) {
    if (auto valid = validate(config); !valid) {
        return tl::unexpected(valid.error());
    }
    auto arrivals =
        protocol::Arrivals::make(config.arrivals, base::RandomStream(config.seed, "arrivals"));
    if (!arrivals) {
        return tl::unexpected(arrivals.error());
    }
    auto sizes =
        protocol::EventSizes::make(config.event_size, base::RandomStream(config.seed, "sizes"));
    if (!sizes) {
        return tl::unexpected(sizes.error());
    }
    const auto units = static_cast<std::uint32_t>(config.builders.size());
    auto manager =
        protocol::EventManager::make({units, config.concurrent_events, config.assignment},
                                     base::RandomStream(config.seed, "assignment"));
    if (!manager) {
        return tl::unexpected(manager.error());
    }
    base::Table<BuilderIndex, protocol::PullBuilder> builders;
    for (std::uint32_t i = 0; i < units; ++i) {
        auto builder =
            protocol::PullBuilder::make({static_cast<std::uint32_t>(config.readouts.size()),
                                         config.outstanding_fragments, config.concurrent_events});
        if (!builder) {
            return tl::unexpected(builder.error());
        }
        builders.push_back(std::move(*builder));
    }
    auto placement = Placement::make(config.readouts, config.builders);
    if (!placement) {
        return tl::unexpected(placement.error());
    }
    std::unique_ptr<PullSystem> system(new PullSystem(
        config, std::move(*arrivals), std::move(*sizes), std::move(*manager), std::move(builders)));
    system->placement_ = std::move(*placement);
    if (auto placed = system->place(config, system->placement_.hosts, kFlowDue); !placed) {
        return tl::unexpected(placed.error());
    }
    for (const std::uint32_t node : system->placement_.readout_node) {
        system->nodes().set_message_cost(node, config.readout_cost_per_message);
    }
    for (const std::uint32_t node : system->placement_.builder_node) {
        system->nodes().set_message_cost(node, config.builder_cost_per_message);
    }
    system->nodes().events().push({config.warmup, kWarm, 0});
    system->schedule_arrival(Time::zero());
    system->start_flows();
    return system;
}

PullSystem::PullSystem(const PullSystemConfig& config, protocol::Arrivals arrivals,
                       protocol::EventSizes sizes, protocol::EventManager manager,
                       base::Table<BuilderIndex, protocol::PullBuilder> builders)
    : config_(config),
      arrivals_(std::move(arrivals)),
      sizes_(std::move(sizes)),
      manager_(std::move(manager)),
      builders_(std::move(builders)),
      processing_random_(config.seed, "processing"),
      shares_(static_cast<std::uint32_t>(config.readouts.size()), config.share) {
    for (std::size_t readout = 0; readout < config_.readouts.size(); ++readout) {
        readouts_.push_back(
            {config_.response,
             base::RandomStream(config_.seed, fmt::format("response.{}", readout))});
    }
}

void PullSystem::on_event(const sim::Event& event) {
    switch (event.kind) {
        case kArrival:
            on_arrival(event.at);
            return;
        case kResponse:
            on_response(event.index, event.at);
            return;
        case kProcessed:
            on_processed(event.index, event.at);
            return;
        case kWarm:
            on_warm(event.at);
            return;
        case kFlowDue:
            on_flow_due(event);
            return;
        default:
            return;
    }
}

// The way of an event: arrival, assignment, requests, responses, fragments, processing.

void PullSystem::on_arrival(Time now) {
    const std::uint64_t event = first_record_ + records_.size();
    records_.push({sizes_.next(), Time::zero(), false});
    ++arrived_;
    ManagerOut out{*this, now};
    manager_.on_event(id_of(event), out);
    schedule_arrival(now);
}

void PullSystem::begin(std::uint64_t event, BuilderIndex builder, Time now) {
    record(event).assigned = now;
    ++begun_;
    BuilderOut out{*this, builder, now};
    builders_[builder].on_assigned(id_of(event), out);
}

void PullSystem::on_letter(const Letter& letter, Time now) {
    const PullNote& note = letter.content;
    if (letter.is_data) {
        BuilderOut out{*this, note.builder, now};
        builders_[note.builder].on_fragment(id_of(note.event), note.readout, letter.bytes, out);
    } else {
        ReadoutOut out{*this, note.readout, now};
        readouts_[note.readout].on_request(id_of(note.event), note.builder,
                                           shares_.fragment(record(note.event).size, note.readout),
                                           out);
    }
}

void PullSystem::on_response(std::uint32_t slot, Time now) {
    const Pending pending = take_pending(slot);
    ReadoutOut out{*this, pending.note.readout, now};
    readouts_[pending.note.readout].on_response_due(id_of(pending.note.event), pending.note.builder,
                                                    pending.bytes, out);
}

/// All fragments are there: the event is built, its processing begins.
void PullSystem::finish(std::uint64_t event, BuilderIndex builder, Time now) {
    const EventRecord& built = record(event);
    ++built_;
    if (warm_) {
        bytes_built_ += built.size;
        latency_.record(now - built.assigned);
        // As wide as those of the occupancy: the counted time in so many parts, rounded up.
        const std::int64_t width =
            ((config_.duration - config_.warmup).ps + config_.bins - 1) / config_.bins;
        BuiltBin& bin = built_bins_[static_cast<std::size_t>((now - config_.warmup).ps / width)];
        ++bin.events;
        bin.latency += now - built.assigned;
    }
    if (observer_ != nullptr) {
        observer_->on_built(id_of(event), builder, built.assigned, now);
    }
    Time delay{};
    for (const base::DelayDistribution& stage : config_.processing) {
        delay += stage.draw(processing_random_);
    }
    nodes().events().push({now + delay, kProcessed, pending_.put({{event, {}, builder}, 0})});
}

void PullSystem::on_processed(std::uint32_t slot, Time now) {
    const PullNote note = take_pending(slot).note;
    BuilderOut out{*this, note.builder, now};
    builders_[note.builder].on_processed(id_of(note.event), out);
    record(note.event).finished = true;
    while (!records_.empty() && records_.front().finished) {
        records_.pop();
        ++first_record_;
    }
    ManagerOut manager_out{*this, now};
    while (!done_builders_.empty()) {
        const BuilderIndex builder = done_builders_.back();
        done_builders_.pop_back();
        manager_.on_builder_done(builder, manager_out);
    }
}

void PullSystem::schedule_arrival(Time now) {
    const Time at = arrivals_.next();
    if (at <= config_.duration) {
        nodes().events().push({std::max(at, now), kArrival, 0});
    }
}

void PullSystem::on_warm(Time now) {
    warm_ = true;
    arrived_cold_ = arrived_;
    built_cold_ = built_;
    built_bins_.resize(config_.bins);
    begin_counting(config_, now);
}

PullReport PullSystem::report() const {
    PullReport report;
    report.events_in_flight = begun_ - built_;
    report.events_waiting = manager_.backlog();
    if (warm_) {
        report.window = now() - config_.warmup;
        report.events_built = built_ - built_cold_;
        report.events_arrived = arrived_ - arrived_cold_;
        report.bytes_built = bytes_built_;
    }
    return report;
}

}  // namespace daqloom::systems

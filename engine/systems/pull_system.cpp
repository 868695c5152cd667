#include "systems/pull_system.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "systems/pull_world.hpp"

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using namespace protocol;

namespace {

constexpr Bytes kLargestMessage = Bytes{1} << 40;

base::expected<void> fails(const char* why) { return base::failure(std::string(why)); }

bool within(Time value, Time highest) { return value >= Time::zero() && value <= highest; }

base::expected<void> check_share(const PullSystemConfig& config) {
    if (config.share.empty()) {
        return {};
    }
    bool positive = config.share.size() == config.readouts.size();
    double sum = 0;
    for (const double share : config.share) {
        positive = positive && share > 0;
        sum += share;
    }
    return positive && std::isfinite(sum)
               ? base::expected<void>{}
               : fails(
                     "shares of the event are given for each readout unit or for none, above "
                     "zero");
}

base::expected<void> validate(const PullSystemConfig& config) {
    if (config.readouts.empty() || config.builders.empty()) {
        return fails("pull building needs one readout unit and one builder unit at least");
    }
    if (config.request_size < 1 || config.request_size > kLargestMessage) {
        return fails("a request has 1 B to 1 TiB");
    }
    if (!within(config.readout_cost_per_message, base::seconds(100)) ||
        !within(config.builder_cost_per_message, base::seconds(100))) {
        return fails("a message costs its host 0 to 100 s");
    }
    return check_share(config);
}

}  // namespace

protocol::PullUnitConfig unit_config(const PullSystemConfig& config) {
    return {.rules = config,
            .readouts = static_cast<std::uint32_t>(config.readouts.size()),
            .builders = static_cast<std::uint32_t>(config.builders.size()),
            .seed = config.seed,
            .reserves = false};
}

base::expected<std::unique_ptr<PullSystem>> PullSystem::make(const PullSystemConfig& config) {
    DAQLOOM_CHECK(validate(config));
    DAQLOOM_TRY(sizes, protocol::EventSizes::make(config.event_size,
                                                  base::RandomStream(config.seed, "sizes")));
    std::unique_ptr<PullSystem> system(new PullSystem(config, std::move(sizes)));
    DAQLOOM_TRY(placement, Placement::make(config.readouts, config.builders));
    system->placement_ = std::move(placement);
    DAQLOOM_CHECK(system->place_nodes(config, config, kFlowDue));
    DAQLOOM_CHECK(system->make_units());
    for (const std::uint32_t node : system->placement_.readouts.node_of) {
        system->nodes().set_message_cost(node, config.readout_cost_per_message);
    }
    for (const std::uint32_t node : system->placement_.builders.node_of) {
        system->nodes().set_message_cost(node, config.builder_cost_per_message);
    }
    system->nodes().events().push({config.warmup, kWarm, 0});
    if (config.run) {
        DAQLOOM_CHECK(system->make_run(config, config, config.readouts, config.builders, false));
        return system;
    }
    World world{*system, 0, Time::zero()};
    system->units_.front().on_start(0, world);
    system->start_flows();
    return system;
}

PullSystem::PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes)
    : RegroupingSystem({kOfEpoch, kControl, kSchedule}),
      config_(config),
      sizes_(std::move(sizes)),
      processing_random_(config.seed, "processing"),
      shares_(static_cast<std::uint32_t>(config.readouts.size()), config.share) {}

base::expected<void> PullSystem::make_units() {
    auto next = BuilderIndex(placement_.builders.node_of.size());
    units_.reserve(placement_.hosts.size());
    for (std::uint32_t node = 0; node < placement_.hosts.size(); ++node) {
        DAQLOOM_TRY(unit, PullUnit::make(config_of(node)));
        units_.push_back(std::move(unit));
        const BuilderIndex builder = placement_.builders.unit_on[node];
        const bool is_spare =
            builder == BuilderIndex::none() && readout_on(node) == ReadoutIndex::none();
        builder_on_.push_back(is_spare ? next++ : builder);
    }
    served_.resize(units_.size());
    return {};
}

/// Of the unit of this epoch.
protocol::PullUnitConfig PullSystem::config_of(std::uint32_t node) const {
    auto config = unit_config(config_);
    config.readouts = static_cast<std::uint32_t>(placement_.readouts.node_of.size());
    config.builders = static_cast<std::uint32_t>(placement_.builders.node_of.size());
    config.readout = readout_on(node);
    config.builder = placement_.builders.unit_on[node];
    return config;
}

void PullSystem::on_event(const sim::Event& event) {
    switch (event.kind) {
        case kArrival: {
            World world{*this, manager_node(), event.at};
            units_[world.node].on_timer({UnitTimer::What::arrival}, event.at, world);
            tell(event.at);
            return;
        }
        case kResponse:
        case kProcessed:
            on_timer(event.index, event.at);
            return;
        case kWarm:
            on_warm(event.at);
            return;
        case kFlowDue:
            on_flow_due(event);
            return;
        default:
            on_run_event(event);
    }
}

void PullSystem::on_letter(const Letter& letter, Time now) {
    if (!has_unit(letter.to)) [[unlikely]] {
        keep_early(letter);
        return;
    }
    World world{*this, letter.to, now};
    if (letter.is_data) {
        const EventId event{letter.content.number};
        if (run_ && is_recorded(event)) [[unlikely]] {
            record(event).collected += letter.bytes;
        }
        units_[letter.to].on_fragment(event, readout_on(letter.from), letter.bytes, now, world);
    } else {
        const EventId event{letter.content.number};
        if (letter.content.kind == UnitMessage::Kind::assign && is_recorded(event)) [[unlikely]] {
            record(event).assigned = now;
        }
        units_[letter.to].on_message(readout_on(letter.from),
                                     placement_.builders.unit_on[letter.from],
                                     letter.content.message(), now, world);
    }
    if (run_) [[unlikely]] {
        tell(now);
        tell_run(letter.to, now);
    }
}

void PullSystem::on_timer(std::uint32_t place, Time now) {
    const Timer due = timers_[place];
    timers_.release(place);
    World world{*this, due.node, now};
    if (run_ && due.timer.what == UnitTimer::What::response) [[unlikely]] {
        --served_[due.node].to_write;
    }
    units_[due.node].on_timer(due.timer, now, world);
    if (due.timer.what == UnitTimer::What::processed) {
        record(due.timer.event).finished = true;
        for (; !records_.empty() && records_.front().finished; ++first_record_) {
            records_.pop();
        }
        tell(now);
    }
}

/// What the event manager and builder units have said to each other, in this order.
void PullSystem::tell(Time now) {
    for (std::size_t i = 0; i < told_.size(); ++i) {  // what is heard may have them say more
        const Told told = told_[i];
        if (!has_unit(told.to)) [[unlikely]] {
            keep_early({.from = told.from, .to = told.to, .content = PullNote::of(told.said)});
            continue;
        }
        World world{*this, told.to, now};
        units_[told.to].on_message(readout_on(told.from), placement_.builders.unit_on[told.from],
                                   told.said, now, world);
    }
    told_.clear();
}

/// All fragments are there: the event is built, its processing begins.
void PullSystem::finish(EventId event, std::uint32_t node, Time now) {
    const EventRecord& built = record(event);
    ++built_;
    if (run_) [[unlikely]] {
        count_delivery(static_cast<std::uint64_t>(event));
    }
    if (warm_) {
        bytes_built_ += run_ ? built.collected : built.size;
        latency_.record(now - built.assigned);
        // As wide as those of the occupancy: the counted time in so many parts, rounded up.
        const std::int64_t width =
            ((config_.duration - config_.warmup).ps + config_.bins - 1) / config_.bins;
        BuiltBin& bin = built_bins_[static_cast<std::size_t>((now - config_.warmup).ps / width)];
        ++bin.events;
        bin.latency += now - built.assigned;
    }
    if (observer_ != nullptr) {
        const EventId in_run{first_mep_ + static_cast<std::uint64_t>(event)};
        observer_->on_built(in_run, builder_on_[node], built.assigned, now);
    }
}

void PullSystem::on_warm(Time now) {
    warm_ = true;
    arrived_cold_ = managed().events;
    built_cold_ = built_;
    incomplete_cold_ = incomplete_in_run();
    built_bins_.resize(config_.bins);
    begin_counting(config_, now);
}

PullSystem::Managed PullSystem::managed() const {
    if (const EventManager* now = manager()) {
        return {before_.events + now->counters().events,
                before_.assigned + now->counters().assigned};
    }
    return before_;
}

base::expected<void> PullSystem::check_conservation() const {
    return check_books().and_then([&] { return run_ ? check_fates() : base::expected<void>{}; });
}

PullReport PullSystem::report() const {
    PullReport report;
    report.events_in_flight = managed().assigned - built_ - unbuilt_;
    report.events_waiting = manager() == nullptr ? 0 : manager()->backlog();
    if (warm_) {
        report.window = now() - config_.warmup;
        report.events_incomplete = incomplete_in_run() - incomplete_cold_;
        report.events_built = built_ - built_cold_ - report.events_incomplete;
        report.events_arrived = managed().events - arrived_cold_;
        report.bytes_built = bytes_built_;
    }
    return report;
}

}  // namespace daqloom::systems

#include "systems/pull_system.hpp"

#include <algorithm>
#include <cmath>
#include <string>

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

/// See VirtualPullWorld.
struct PullSystem::World {
    PullSystem& system;
    std::uint32_t node;
    Time now;

    [[nodiscard]] BuilderIndex self() const { return system.placement_.builders.unit_on[node]; }

    void send(ReadoutIndex to, const UnitMessage& said) {
        if (said.kind != UnitMessage::Kind::request) {
            system.told_.push_back({said, self()});
            return;
        }
        const ReadoutIndex last(system.placement_.readouts.node_of.size() - 1);
        system.nodes().expect(node, system.placement_.readouts.node_of[std::min(to + 4, last)]);
        system.nodes().send({.from = node,
                             .to = system.placement_.readouts.node_of[to],
                             .bytes = system.config_.request_size,
                             .content = PullNote::of(said)},
                            now);
    }
    void send(BuilderIndex to, const UnitMessage& said) { system.told_.push_back({said, to}); }
    void set_timer(Time at, const UnitTimer& timer) {
        if (timer.what == UnitTimer::What::arrival) {
            if (at <= system.config_.duration) {
                system.nodes().events().push({std::max(at, now), kArrival, 0});
            }
            return;
        }
        const std::uint32_t kind = timer.what == UnitTimer::What::response ? kResponse : kProcessed;
        system.nodes().events().push({at, kind, system.timers_.put({timer, node})});
    }

    // ---- of a readout unit

    void write(EventId event, BuilderIndex to, Bytes /*offset*/) {
        system.nodes().send(
            {.from = node,
             .to = system.placement_.builders.node_of[to],
             .bytes = system.shares_.fragment(system.record(event).size, ReadoutIndex(node)),
             .is_data = true,
             .content = {.number = static_cast<std::uint64_t>(event)}},
            now);
    }
    void give_back(std::uint32_t /*count*/) {}

    // ---- of the event manager

    void assigned(EventId /*event*/) { system.records_.push({system.sizes_.next(), now, false}); }

    // ---- of a builder unit

    void collect(EventId /*event*/, std::uint32_t /*slot*/) {}
    [[nodiscard]] Bytes place(std::uint32_t /*slot*/, ReadoutIndex /*readout*/) const { return 0; }
    [[nodiscard]] base::RandomStream& processing_random() { return system.processing_random_; }
    void deliver(EventId event, std::uint32_t /*slot*/) { system.finish(event, self(), now); }
};

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
    DAQLOOM_CHECK(system->make_units());
    DAQLOOM_CHECK(system->place(config, system->placement_.hosts, kFlowDue));
    for (const std::uint32_t node : system->placement_.readouts.node_of) {
        system->nodes().set_message_cost(node, config.readout_cost_per_message);
    }
    for (const std::uint32_t node : system->placement_.builders.node_of) {
        system->nodes().set_message_cost(node, config.builder_cost_per_message);
    }
    system->nodes().events().push({config.warmup, kWarm, 0});
    World world{*system, 0, Time::zero()};
    system->units_.front().on_start(world);
    system->start_flows();
    return system;
}

PullSystem::PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes)
    : config_(config),
      sizes_(std::move(sizes)),
      processing_random_(config.seed, "processing"),
      shares_(static_cast<std::uint32_t>(config.readouts.size()), config.share) {}

base::expected<void> PullSystem::make_units() {
    DAQLOOM_TRY(placement, Placement::make(config_.readouts, config_.builders));
    placement_ = std::move(placement);
    auto config = unit_config(config_);
    units_.reserve(placement_.hosts.size());
    for (std::uint32_t node = 0; node < placement_.hosts.size(); ++node) {
        config.readout = readout_on(node);
        config.builder = placement_.builders.unit_on[node];
        DAQLOOM_TRY(unit, PullUnit::make(config));
        units_.push_back(std::move(unit));
    }
    return {};
}

void PullSystem::on_event(const sim::Event& event) {
    switch (event.kind) {
        case kArrival: {
            World world{*this, 0, event.at};
            units_.front().on_timer({UnitTimer::What::arrival}, event.at, world);
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
            return;
    }
}

void PullSystem::on_letter(const Letter& letter, Time now) {
    World world{*this, letter.to, now};
    if (letter.is_data) {
        units_[letter.to].on_fragment(EventId{letter.content.number}, ReadoutIndex(letter.from),
                                      letter.bytes, now, world);
    } else {
        units_[letter.to].on_message(readout_on(letter.from),
                                     placement_.builders.unit_on[letter.from],
                                     letter.content.message(), now, world);
    }
}

void PullSystem::on_timer(std::uint32_t place, Time now) {
    const Timer due = timers_[place];
    timers_.release(place);
    World world{*this, due.node, now};
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
        const bool is_to_manager = told.said.kind == UnitMessage::Kind::done;
        const std::uint32_t builder = placement_.builders.node_of[told.builder];
        const std::uint32_t from = is_to_manager ? builder : 0;
        World world{*this, is_to_manager ? 0 : builder, now};
        units_[world.node].on_message(readout_on(from), placement_.builders.unit_on[from],
                                      told.said, now, world);
    }
    told_.clear();
}

/// All fragments are there: the event is built, its processing begins.
void PullSystem::finish(EventId event, BuilderIndex builder, Time now) {
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
        observer_->on_built(event, builder, built.assigned, now);
    }
}

void PullSystem::on_warm(Time now) {
    warm_ = true;
    arrived_cold_ = managed().events;
    built_cold_ = built_;
    built_bins_.resize(config_.bins);
    begin_counting(config_, now);
}

PullReport PullSystem::report() const {
    PullReport report;
    report.events_in_flight = managed().assigned - built_;
    report.events_waiting = units_.front().manager()->backlog();
    if (warm_) {
        report.window = now() - config_.warmup;
        report.events_built = built_ - built_cold_;
        report.events_arrived = managed().events - arrived_cold_;
        report.bytes_built = bytes_built_;
    }
    return report;
}

}  // namespace daqloom::systems

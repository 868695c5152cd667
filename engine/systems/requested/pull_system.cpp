#include "systems/requested/pull_system.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

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
    const StorageRules& storage = config.storage;
    if (storage.units != config.storages.size() || !(storage.accepted >= 0) ||
        storage.accepted > 1 || storage.timeout <= Time::zero()) {
        return fails(
            "storage needs a host for each storage unit, a share of 0 to 1 and a timeout above 0 "
            "s");
    }
    if (storage.units > 0 && config.run) {
        return fails("storage units are not simulated with units that regroup; remove either");
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
    DAQLOOM_CHECK(system->build(unit_config(config), config.storages));
    return system;
}

PullSystem::PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes)
    : RequestedSystem(config_),
      config_(config),
      sizes_(std::move(sizes)),
      shares_(static_cast<std::uint32_t>(config.readouts.size()), config.share) {}

base::expected<void> PullSystem::prepare_sources() {
    for (const std::uint32_t number : placement_.readouts.node_of) {
        nodes().set_message_cost(number, config_.readout_cost_per_message);
    }
    for (const std::uint32_t number : placement_.builders.node_of) {
        nodes().set_message_cost(number, config_.builder_cost_per_message);
    }
    return {};
}

/// Skips the events of earlier epochs. Later events that have arrived meanwhile come at once.
void PullSystem::on_begin(std::uint32_t number, Time now) {
    unit(number).skip_arrivals(first_mep_);
    settle(number, now);
}

void PullSystem::on_retire(const PullUnit& unit) {
    if (const EventManager* manager = unit.manager()) {
        before_.events += manager->counters().events - manager->backlog();
        before_.assigned += manager->counters().assigned;
    }
}

/// Delivers the fragments of the source to its readout unit, up to the fragment of the requested
/// event.
void PullSystem::on_request(std::uint32_t number, EventId event, Time now) {
    PullUnit& here = unit(number);
    World world{*this, number, now};
    while (here.taken() <= static_cast<std::uint64_t>(event) && here.wants_data()) {
        here.on_data(now, world);
    }
}

/// Returns 0 if the builder unit stopped waiting for the event, or got it without this fragment.
base::Bytes PullSystem::fragment_of(std::uint32_t number, EventId event) {
    if (run_) [[unlikely]] {
        const bool is_taken = static_cast<std::uint64_t>(event) < unit(number).taken();
        return is_taken && is_recorded(event)
                   ? shares_.fragment(record(event).size, readouts_in_run_.unit_on[number])
                   : 0;
    }
    return shares_.fragment(record(event).size, ReadoutIndex(number));
}

/// Counts a built event, and queues the end of its consumption.
void PullSystem::on_built(std::uint32_t number, EventId event, const EventRecord& record,
                          Time now) {
    ++built_;
    if (is_warm()) {
        bytes_built_ += run_ ? record.collected : record.size;
        // Bin width as for the occupancy: the counted time divided by the number of bins,
        // rounded up.
        const std::int64_t width =
            ((config_.duration - config_.warmup).ps + config_.bins - 1) / config_.bins;
        BuiltBin& bin = built_bins_[static_cast<std::size_t>((now - config_.warmup).ps / width)];
        ++bin.events;
        bin.latency += now - record.assigned;
    }
    if (observer_ != nullptr) {
        observer_->on_built(EventId{in_run(event)}, builder_on(number), record.assigned, now);
    }
    if (config_.storage.accepts(event, config_.seed)) {
        accepted_[event] = {.built = now, .size = record.size};
    }
    queue_input({.is_message = false, .to = number, .event = event});
}

void PullSystem::store(std::uint32_t number, EventId event, StorageIndex to, Time now) {
    Accepted& accepted = accepted_[event];
    ++accepted.copies;
    ++stored_.copies_under_way;
    nodes().send({.from = number,
                  .to = node_of(to),
                  .bytes = accepted.size,
                  .is_data = true,
                  .content = {.number = static_cast<std::uint64_t>(event)}},
                 now);
}

/// Counts a copy of an event at its storage unit, which acknowledges the copy, or passes the
/// acknowledgement to the builder unit.
void PullSystem::on_storage_message(const Message& message, Time now) {
    const EventId event{message.content.number};
    Accepted& accepted = accepted_[event];
    if (message.is_data) {
        --stored_.copies_under_way;
        ++stored_.copies_received;
        ++stored_.acknowledgements_under_way;
        if (!accepted.is_stored) {
            accepted.is_stored = true;
            ++stored_.events;
            stored_.bytes += accepted.size;
            if (is_warm()) {
                storage_latency_.record(now - accepted.built);
            }
        }
        nodes().send({.from = message.to,
                      .to = message.from,
                      .bytes = config_.control_bytes,
                      .content = message.content},
                     now);
        return;
    }
    --stored_.acknowledgements_under_way;
    World world{*this, message.to, now};
    unit(message.to).on_stored(event, now, world);
    if (--accepted.copies == 0) {
        accepted_.erase(event);
    }
    settle(message.to, now);
}

void PullSystem::on_counting() {
    arrived_cold_ = managed().events;
    built_cold_ = built_;
    incomplete_cold_ = incomplete_in_run();
    stored_cold_ = stored_;
    sent_cold_ = sent();
    built_bins_.resize(config_.bins);
}

PullSystem::ManagerCounts PullSystem::managed() const {
    if (const EventManager* now = manager()) {
        return {before_.events + now->counters().events,
                before_.assigned + now->counters().assigned};
    }
    return before_;
}

PullSystem::StorageCounters PullSystem::sent() const {
    return {.accepted = sum(&PullUnit::storage, &StorageCounters::accepted),
            .sent = sum(&PullUnit::storage, &StorageCounters::sent),
            .stored = sum(&PullUnit::storage, &StorageCounters::stored),
            .given_up = sum(&PullUnit::storage, &StorageCounters::given_up),
            .late = sum(&PullUnit::storage, &StorageCounters::late)};
}

base::expected<void> PullSystem::check_own_books() const {
    const StorageCounters all = sent();
    const std::uint64_t acknowledged = all.stored + all.late;
    return balance(
        {{"copies of events", all.sent, stored_.copies_received, stored_.copies_under_way},
         {"acknowledgements of events", stored_.copies_received, acknowledged,
          stored_.acknowledgements_under_way}});
}

PullReport PullSystem::report() const {
    PullReport report;
    const StorageCounters all = sent();
    report.events_storing = all.accepted - all.stored - all.given_up;
    report.events_in_flight = managed().assigned - built_ - unbuilt_;
    report.events_waiting = manager() == nullptr ? 0 : manager()->backlog();
    if (is_warm()) {
        report.window = now() - config_.warmup;
        report.events_incomplete = incomplete_in_run() - incomplete_cold_;
        report.events_built = built_ - built_cold_ - report.events_incomplete;
        report.events_arrived = managed().events - arrived_cold_;
        report.bytes_built = bytes_built_;
        report.events_accepted = all.accepted - sent_cold_.accepted;
        report.events_stored = stored_.events - stored_cold_.events;
        report.bytes_stored = stored_.bytes - stored_cold_.bytes;
        report.events_unstored = all.given_up - sent_cold_.given_up;
        report.storage_latency = storage_latency_;
    }
    return report;
}

}  // namespace daqloom::systems

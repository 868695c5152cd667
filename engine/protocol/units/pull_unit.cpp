#include "protocol/units/pull_unit.hpp"

#include <fmt/format.h>

namespace daqloom::protocol {

using base::RandomStream;
using base::Time;

base::expected<PullUnit> PullUnit::make(PullUnitConfig config) {
    PullUnit unit(std::move(config));
    const PullUnitConfig& given = unit.config_;
    const PullRules& rules = given.rules;
    std::uint32_t responses = 0;  // limit of pending responses
    if (given.readout == ReadoutIndex()) {
        DAQLOOM_TRY(manager,
                    EventManager::make({given.builders, rules.concurrent_events, rules.assignment},
                                       RandomStream(given.seed, "assignment")));
        DAQLOOM_TRY(arrivals, Arrivals::make(rules.arrivals, RandomStream(given.seed, "arrivals")));
        unit.manager_ = std::make_unique<Manager>(std::move(manager), std::move(arrivals));
        unit.next_arrival_ = unit.after_begin(unit.manager_->arrivals.next());
    }
    if (given.readout != ReadoutIndex::none()) {
        unit.response_random_ = std::make_unique<RandomStream>(
            given.seed, fmt::format("response.{}", given.readout.value()));
        unit.book_.emplace(unit.collected() + some);
        unit.requesters_ = base::Table<BuilderIndex, Requester>(given.builders);
        unit.requests_ = base::Table<BuilderIndex, Requests>(given.builders);
        responses = unit.window() + unit.collected() + some;
    }
    if (given.builder != BuilderIndex::none()) {
        DAQLOOM_TRY(builder,
                    PullBuilder::make({.readouts = given.readouts,
                                       .outstanding_fragments = rules.outstanding_fragments,
                                       .concurrent_events = rules.concurrent_events,
                                       .when_incomplete = given.when_incomplete}));
        unit.builder_.emplace(std::move(builder));
        unit.processing_random_ = std::make_unique<RandomStream>(
            given.seed, fmt::format("processing.{}", given.builder.value()));
        unit.processed_at_.resize(rules.concurrent_events);
    }
    if (given.reserves) {
        unit.timers_ = Timers(responses + rules.concurrent_events);
        if (unit.book_) {
            unit.book_->reserve(unit.window());
        }
    }
    unit.update_due();
    return unit;
}

bool PullUnit::on_last_request(BuilderIndex builder, std::uint64_t requests) {
    Requester& requester = requesters_[builder];
    if (requester.is_lost) {
        return true;
    }
    if (requester.last_request != unknown || requests < requests_[builder].made) {
        return false;
    }
    requester.last_request = requests;
    return true;
}

bool PullUnit::is_drained() const {
    const auto is_served = [this](BuilderIndex builder) {
        const Requester& requester = requesters_[builder];
        const Requests& requests = requests_[builder];
        return requester.is_lost ||
               (requests.made == requester.last_request && requests.unanswered == 0);
    };
    return is_closing_ && (!book_ || std::ranges::all_of(requesters_.indices(), is_served)) &&
           (!builder_ || builder_->is_drained());
}

bool PullUnit::waits_for_its_own() const {
    const bool waits_for_arrivals =
        manager_ && manager_->events.counters().done == manager_->events.counters().events;
    const bool waits_for_consumer =
        builder_ && builder_->counters().done + config_.rules.concurrent_events ==
                        builder_->counters().built + builder_->counters().incomplete;
    return waits_for_arrivals || waits_for_consumer || waits_for_data() > 0 ||
           timers_.next() != Time::never();
}

std::uint64_t PullUnit::unexpected_messages() const {
    return (manager_ ? manager_->events.counters().unexpected : 0) +
           (builder_ ? builder_->counters().unexpected_assignments : 0);
}

}  // namespace daqloom::protocol

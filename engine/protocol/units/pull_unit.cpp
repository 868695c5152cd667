#include "protocol/units/pull_unit.hpp"

#include <fmt/format.h>

namespace daqloom::protocol {

using base::RandomStream;
using base::Time;

base::expected<PullUnit> PullUnit::make(Config config) {
    PullUnit unit(std::move(config));
    const Config& given = unit.config_;
    const PullRules& rules = given.rules;
    DAQLOOM_CHECK(unit.prepare(rules.assignment));
    if (unit.manager_) {
        DAQLOOM_TRY(arrivals, Arrivals::make(rules.arrivals, RandomStream(given.seed, "arrivals")));
        unit.arrivals_ = std::make_unique<Arrivals>(std::move(arrivals));
        unit.next_arrival_ = unit.after_begin(unit.arrivals_->next());
    }
    if (unit.book_) {
        unit.response_random_ = std::make_unique<RandomStream>(
            given.seed, fmt::format("response.{}", given.readout.value()));
        unit.requesters_ = base::Table<BuilderIndex, Requester>(given.builders);
        unit.requests_ = base::Table<BuilderIndex, Requests>(given.builders);
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
        if (rules.storage.units > 0) {
            unit.storage_.emplace(rules.storage, given.seed, rules.concurrent_events);
        }
    }
    if (given.reserves) {  // pending responses and processed events
        const std::uint32_t responses = unit.book_ ? unit.window() + unit.collected() + margin : 0;
        unit.timers_ = Timers(responses + rules.concurrent_events);
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
    const auto is_done = [this](BuilderIndex builder) { return is_served(builder, 0); };
    return is_closing_ && std::ranges::all_of(requesters_.indices(), is_done) &&
           (!builder_ || builder_->is_drained());
}

bool PullUnit::waits_for_its_own() const {
    const bool waits_for_arrivals =
        manager_ && manager_->counters().done == manager_->counters().events;
    return waits_for_arrivals || waits_for_consumer() || waits_for_data() > 0 ||
           timers_.next() != Time::never();
}

}  // namespace daqloom::protocol

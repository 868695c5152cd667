#include "protocol/run/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace daqloom::protocol {

namespace {

/// More beats than a run control has counted since its last snapshot.
constexpr std::uint64_t lost_beats = std::uint64_t{1} << 32;

}  // namespace

RunState::RunState(const RunPlan& plan, const Gauges& gauges)
    : plan_(plan),
      roles_(plan),
      slots_(roles_.slots()),
      deadline_(plan.launch_timeout),
      ledger_(plan.takes_turns),
      leases_(plan) {
    units_.reserve(plan.units);
    for (std::uint32_t number = 0; number < plan.units; ++number) {
        units_.emplace_back(UnitIndex(number), gauges);
    }
}

std::vector<RunOutput> RunState::take() { return std::exchange(out_, {}); }

RunSnapshot RunState::snapshot() const {
    const std::vector<UnitIndex> none;
    RunSnapshot made{.phase = phase_ == RunPhase::attaching ? resumed_ : phase_,
                     .goal = goal_,
                     .epoch = epoch_,
                     .first_mep = first_mep_,
                     .order = order_,
                     .session = session_,
                     .beat = beat_,
                     .was_ready = was_ready_,
                     .members = {members_.begin(), members_.end()},
                     .readouts = roles_.readouts_by(),
                     .builders = roles_.builders_by(),
                     .readout_slots = slots_.is_rearranged() ? slots_.readouts : none,
                     .builder_slots = slots_.is_rearranged() ? slots_.builders : none,
                     .failure = failure_,
                     .units_lost = log_.counts.units_lost,
                     .regroupings = log_.counts.regroupings,
                     .run_events = log_.counts.run_events,
                     .closed = ledger_.closed(),
                     .epochs = ledger_.epochs()};
    for (const UnitView& unit : units_) {
        made.units.push_back({.standing = unit.standing,
                              .process = unit.process,
                              .reason = unit.reason,
                              .last_report = unit.last_report,
                              .failures = unit.failures,
                              .is_excluded = unit.is_excluded,
                              .is_source_excluded = unit.is_source_excluded,
                              .tally = unit.tally.snapshot()});
    }
    leases_.write(made);
    return made;
}

base::expected<void> RunState::check(const RunSnapshot& snapshot) const {
    const std::size_t units = units_.size();
    const auto is_known = [&](UnitIndex unit) {
        return unit == UnitIndex::none() || unit.value() < units;
    };
    const bool fits = snapshot.units.size() == units && snapshot.readouts.size() == units &&
                      snapshot.builders.size() == units &&
                      std::ranges::all_of(snapshot.readouts, is_known) &&
                      std::ranges::all_of(snapshot.builders, is_known);
    DAQLOOM_REFUSE_IF(!fits, "the state of a run of {} units; expected one of {} units",
                      snapshot.units.size(), units);
    if (!snapshot.readout_slots.empty()) {
        DAQLOOM_CHECK(slots_.rearranged(snapshot.readout_slots, snapshot.builder_slots));
    }
    const bool has_members = std::ranges::all_of(snapshot.members, [&](UnitIndex unit) {
        return unit.value() < units && snapshot.units[unit.value()].standing == Standing::available;
    });
    const bool has_counts = std::ranges::all_of(snapshot.epochs, [](const LedgerEpoch& epoch) {
        return std::ranges::all_of(epoch.builders,
                                   [&](UnitIndex unit) { return epoch.before.contains(unit); }) &&
               std::ranges::all_of(
                   epoch.counted,
                   [&](const auto& unit) { return epoch.before.contains(unit.first); }) &&
               epoch.before.size() == epoch.builders.size() &&
               std::ranges::all_of(epoch.before,
                                   [&](const auto& unit) { return unit.first.value() < 1U << 31; });
    });
    DAQLOOM_REFUSE_IF(!has_members || !has_counts,
                      "the state of a run that contradicts itself; begin a new run");
    return {};
}

void RunState::restore(base::Time now, const RunSnapshot& snapshot) {
    phase_ = RunPhase::attaching;
    resumed_ = snapshot.phase;
    goal_ = snapshot.goal;
    epoch_ = snapshot.epoch;
    first_mep_ = snapshot.first_mep;
    order_ = snapshot.order;
    session_ = snapshot.session;
    beat_ = snapshot.beat + lost_beats;
    was_ready_ = snapshot.was_ready;
    members_ = {snapshot.members.begin(), snapshot.members.end()};
    roles_.resume(snapshot.readouts, snapshot.builders);
    if (!snapshot.readout_slots.empty()) {
        slots_ = *slots_.rearranged(snapshot.readout_slots, snapshot.builder_slots);
        roles_ = roles_.in(slots_);
    }
    failure_ = snapshot.failure;
    log_.counts = {snapshot.units_lost, snapshot.regroupings, snapshot.run_events};
    ledger_.resume(snapshot.epochs, snapshot.closed);
    leases_.resume(snapshot);
    ticked_at_ = beat_at_ = now;
    for (UnitView& unit : units_) {
        const UnitSnapshot& its = snapshot.units[unit.number.value()];
        unit.process = its.process;
        unit.reason = its.reason;
        unit.last_report = its.last_report;
        unit.failures = static_cast<int>(its.failures);
        unit.is_excluded = its.is_excluded;
        unit.is_source_excluded = its.is_source_excluded;
        unit.tally.resume(its.tally);
        unit.not_written = unit.tally.totals().count(counter_names::meps_not_written);
        unit.is_awaited = its.standing == Standing::available;
        unit.standing = unit.is_awaited ? its.standing : Standing::absent;
        if (!unit.is_awaited && unit.process) {
            unit.join_by = now + plan_.launch_timeout;
        } else if (!unit.is_awaited && plan_.restart) {
            unit.returns_at = now + plan_.fault_timeout;
        }
    }
}

Balance RunState::balance() const {
    return ledger_.balance(next_mep(), [this](UnitIndex number) { return totals(number); });
}

Balance RunState::balance_of_ended() const {
    return ledger_.ended([this](UnitIndex number) { return totals(number); });
}

std::vector<UnitView*> RunState::of(const Members& numbers) {
    std::vector<UnitView*> found;
    for (const UnitIndex number : numbers) {
        found.push_back(&view(number));
    }
    return found;
}

MepCounts RunState::totals(UnitIndex number) const {
    return MepCounts::of(unit(number).tally.totals());
}

void RunState::read(UnitView& unit, const NamedCounters& counters) {
    unit.tally.read(counters);
    const std::int64_t next = counters.count(counter_names::next_mep);
    leases_.answered(static_cast<std::uint64_t>(std::max<std::int64_t>(next, 0)));
}

void RunState::lose(base::Time now, UnitView& unit, const std::string& reason) {
    unit.pending.reset();
    unit.answer.reset();
    unit.pulse.reset();
    unit.is_awaited = false;
    ++changes_;
    if (unit.standing == Standing::absent || unit.standing == Standing::lost) {
        return;
    }
    unit.standing = Standing::lost;
    unit.lost_at = now;
    unit.reason = reason;
    if (phase_ == RunPhase::ending || phase_ == RunPhase::ended) {
        return;
    }
    note(now, fmt::format("unit {} is lost: {}", unit.number.value(), reason), About::unit,
         unit.number);
    ++log_.counts.units_lost;
    if (members_.erase(unit.number) > 0) {
        broken_ = fmt::format("unit {} is lost", unit.number.value());
        if (now - unit.member_since.value_or(base::Time::zero()) > longest_pause) {
            unit.failures = 0;
        }
        unit.member_since.reset();
    }
    if (plan_.restart) {
        unit.returns_at = now + pause(unit);
    }
}

base::Time RunState::pause(UnitView& unit) {
    ++unit.failures;
    base::Time pause = plan_.fault_timeout;
    for (int failure = 1; failure < unit.failures && pause < longest_pause; ++failure) {
        pause = pause * 2;
    }
    return std::min(pause, longest_pause);
}

void RunState::launch_process(base::Time now, UnitView& unit) {
    unit.join_by = now + plan_.launch_timeout;
    unit.returns_at.reset();
    ++changes_;
    if (plan_.launches) {
        unit.process = true;
        out_.emplace_back(LaunchProcess{unit.number});
    }
}

void RunState::end_process(base::Time now, UnitView& unit) {
    if (unit.returns_at || unit.reset_by_operator) {
        unit.returns_at = now;
    }
    if (unit.process) {
        out_.emplace_back(KillProcess{unit.number});
    } else if (unit.session != 0) {
        out_.emplace_back(DropConnection{unit.number, unit.session});
    }
}

void RunState::send_reset(base::Time now, UnitView& unit) {
    unit.standing = Standing::joining;
    unit.returns_at.reset();
    unit.last_report_at = now;
    send_order(now, unit, orders::Reset{}, plan_.order_timeout);
}

void RunState::send_order(base::Time now, UnitView& unit, Order order, base::Time timeout) {
    ++order_;
    ++changes_;
    unit.answer.reset();
    unit.pending = PendingOrder{order_, now + timeout, std::string(name_of(order))};
    out_.emplace_back(SendOrder{unit.number, unit.session, order_, std::move(order)});
}

void RunState::enter(base::Time now, RunPhase phase, std::string_view why) {
    phase_ = phase;
    if (phase == RunPhase::halting && goal_ == RunGoal::running) {
        ++log_.counts.regroupings;
    }
    note(now, fmt::format("{}{}{}", name_of(phase), why.empty() ? "" : ": ", why),
         phase == RunPhase::error ? About::failure : About::course);
}

void RunState::note(base::Time now, std::string text, About about, std::optional<UnitIndex> lost) {
    ++changes_;
    log_.note({now, std::move(text), about, phase_, members_.size(), lost});
}

}  // namespace daqloom::protocol

#include "protocol/run/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace daqloom::protocol {

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
    log_.note({now, std::move(text), about, phase_, members_.size(), lost});
}

}  // namespace daqloom::protocol

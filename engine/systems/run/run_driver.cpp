#include "systems/run/run_driver.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

namespace daqloom::systems {

using base::Time;
using namespace protocol;

RunDriver::RunDriver(const RunPlan& plan, Time launch, ControlledUnits& units)
    : control_(plan, {counter_names::next_mep}),
      launch_(launch),
      units_(units),
      processes_(plan.units),
      host_down_until_(plan.units),
      is_there_(plan.units, false),
      ledger_(plan.takes_turns) {}

void RunDriver::begin(Time now) {
    control_.want(now, RunGoal::running);
    control_.launch(now);
    act(now);
    wake(now + control_.plan().heartbeat / kTicksPerHeartbeat, UnitIndex(0), kTick);
}

void RunDriver::on_due(std::uint32_t number, Time now) {
    const UnitIndex unit(number / kDues);
    Process& process = of(unit);
    switch (static_cast<Due>(number % kDues)) {
        case kTick:
            wake(now + control_.plan().heartbeat / kTicksPerHeartbeat, unit, kTick);
            control_.tick(now);
            break;
        case kReport:
            if (process.session != 0 && process.report_at == now) {
                report(unit, now);
            }
            break;
        case kGoesOn:
            go_on(unit, now);
            break;
        case kLeaseOver:
            if (process.session != 0 && now >= process.unit.leased().until) {
                units_.lease(unit, process.unit.leased());
            }
            break;
        case kDrained:
            on_drain(unit, now);
            break;
        case kHurry:
        case kGiveUp:
            if (process.is_draining && !is_stopped(unit, now)) {
                on_drain(unit, now);
            }
            break;
        case kLaunched:
            join(unit, now);
            break;
        case kHostUp:
            control_.set_host_down(unit, host_down_until_[unit.value()] > now);
            control_.tick(now);
            break;
        case kDues:
            break;
    }
    act(now);
}

// ---- faults of units

void RunDriver::kill(UnitIndex unit, Time now) {
    Process& process = of(unit);
    if (process.session == 0) {
        return;
    }
    control_.counted(unit, units_.counters(unit));
    process = {};
    units_.shut(unit);
    control_.exited(now, unit, "SIGKILL");
    act(now);
}

void RunDriver::hold(UnitIndex unit, Time until, Time now) {
    Time& down_until = host_down_until_[unit.value()];
    down_until = std::max(down_until, until);
    control_.set_host_down(unit, down_until > now);
    if (until != Time::never()) {
        wake(until, unit, kHostUp);
    }
}

void RunDriver::check_drained(UnitIndex unit, Time now) {
    if (units_.is_drained(unit)) {
        of(unit).is_draining = false;
        wake(now, unit, kDrained);
    }
}

void RunDriver::on_drain(UnitIndex unit, Time now) {
    Process& process = of(unit);
    if (auto answer = process.unit.on_drain(now, &units_)) {
        process.is_draining = false;
        send(unit, std::move(answer), now);
    } else if (process.unit.is_halting()) {
        process.is_draining = true;
        check_drained(unit, now);
    }
}

void RunDriver::join(UnitIndex unit, Time now) {
    of(unit) = {.session = ++sessions_, .unit = UnitProcess(unit)};
    control_.joined(now, unit, sessions_);
    report_later(unit, now);
}

void RunDriver::go_on(UnitIndex unit, Time now) {
    if (is_stopped(unit, now)) {
        wake(units_.stopped_until(unit), unit, kGoesOn);
        return;
    }
    for (const SendOrder& order : std::exchange(of(unit).waiting, {})) {
        obey(order, now);
    }
    if (of(unit).session != 0) {
        report(unit, now);
    }
    if (of(unit).is_draining) {
        check_drained(unit, now);
    }
}

// ---- reports

void RunDriver::report_later(UnitIndex unit, Time now) {
    of(unit).report_at = now + control_.plan().heartbeat;
    wake(of(unit).report_at, unit, kReport);
}

void RunDriver::report(UnitIndex unit, Time now) {
    if (is_stopped(unit, now)) {
        if (units_.stopped_until(unit) != Time::never()) {
            wake(units_.stopped_until(unit), unit, kGoesOn);
        }
        return;
    }
    send(unit, {}, now);
}

void RunDriver::send(UnitIndex unit, UnitProcess::Answer answer, Time now) {
    Process& process = of(unit);
    for (const reports::Report& report : process.unit.reports(now, std::move(answer), &units_)) {
        control_.reported(now, unit, process.session, report);
    }
    report_later(unit, now);
}

// ---- outputs of the run control

/// Executes the run control's outputs, including those that the units' answers cause meanwhile.
void RunDriver::act(Time now) {
    if (is_acting_) {
        return;
    }
    is_acting_ = true;
    for (std::vector<RunOutput> out = control_.take(); !out.empty(); out = control_.take()) {
        for (const RunOutput& each : out) {
            std::visit([&](const auto& output) { carry_out(output, now); }, each);
        }
    }
    is_acting_ = false;
    note(now);
}

void RunDriver::note(Time now) {
    for (const UnitView& unit : control_.units()) {
        const bool is_there =
            unit.standing == Standing::available || unit.standing == Standing::joining;
        if (is_there_[unit.number.value()] && !is_there) {
            losses_.push_back({now, unit.number});
        }
        is_there_[unit.number.value()] = is_there;
    }
    const auto members = control_.phase() == RunPhase::running
                             ? static_cast<std::uint32_t>(control_.members().size())
                             : 0;
    if (members_.empty() || members_.back().members != members) {
        members_.push_back({now, members});
    }
}

void RunDriver::carry_out(const SendOrder& order, Time now) {
    if (of(order.unit).session == order.session) {
        obey(order, now);
    }
}

void RunDriver::carry_out(const LaunchProcess& launch, Time now) {
    if (started_ == 0) {
        join(launch.unit, now);  // before the first epoch, all processes are running
    } else {
        wake(now + launch_, launch.unit, kLaunched);
    }
}

void RunDriver::carry_out(const KillProcess& output, Time now) { kill(output.unit, now); }

void RunDriver::carry_out(const DropConnection& drop, Time now) {
    if (of(drop.unit).session == drop.session) {
        of(drop.unit) = {};
        units_.shut(drop.unit);
        control_.left(now, drop.unit, drop.session);
    }
}

void RunDriver::obey(const SendOrder& order, Time now) {
    Process& process = of(order.unit);
    if (order.session != process.session) {
        return;
    }
    if (is_stopped(order.unit, now)) {
        if (process.waiting.empty() && units_.stopped_until(order.unit) != Time::never()) {
            wake(units_.stopped_until(order.unit), order.unit, kGoesOn);
        }
        process.waiting.push_back(order);
        return;
    }
    const auto* const start = std::get_if<orders::Start>(&order.order);
    if (start != nullptr && started_ != process.unit.epoch()) {
        started_ = process.unit.epoch();
        first_mep_ = start->first_mep;
        ledger_.begin(first_mep_, control_.roles().builders(), totals());
    }
    auto answer = process.unit.on_order(now, order.number, order.order, &units_);
    const Time leased_until = process.unit.leased().until;
    const bool is_renewal = std::holds_alternative<orders::Renew>(order.order);
    if ((start != nullptr || is_renewal) && now < leased_until) {
        wake(leased_until, order.unit, kLeaseOver);
    }
    if (answer) {
        process.is_draining = false;
        send(order.unit, std::move(answer), now);
    } else if (!is_renewal) {
        process.is_draining = true;
        wake(process.unit.hurries_at(), order.unit, kHurry);
        wake(process.unit.gives_up_at(), order.unit, kGiveUp);
        check_drained(order.unit, now);
    }
}

// ---- fates of MEPs

Ledger::Totals RunDriver::totals() const {
    return [this](UnitIndex unit) { return units_.counts(unit).meps(); };
}

RunDriver::Accounts RunDriver::accounts() const {
    Accounts all{};
    std::uint64_t next_mep = first_mep_;
    for (const UnitView& unit : control_.units()) {
        const UnitCounts counted = units_.counts(unit.number);
        next_mep = std::max(next_mep, counted.next_mep);
        all.built += counted.built;
        all.incomplete += counted.incomplete;
        all.dropped += counted.dropped;
        all.discarded += counted.discarded;
    }
    const Balance ended = ledger_.ended(totals());
    const Balance whole = ledger_.balance(next_mep, totals());
    all.begun = static_cast<std::int64_t>(next_mep);
    all.unfinished = ended.unfinished;
    all.skipped = ended.skipped;
    all.in_flight = whole.unfinished + whole.skipped - ended.unfinished - ended.skipped;
    all.twice = whole.twice;
    all.units_lost = control_.counts().units_lost;
    all.regroupings = control_.counts().regroupings;
    return all;
}

}  // namespace daqloom::systems

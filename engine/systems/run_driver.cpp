#include "systems/run_driver.hpp"

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
            if (process.session != 0 && now >= process.leased_until) {
                units_.lease(unit, 0, now);
            }
            break;
        case kDrained:
            halted(unit, now);
            break;
        case kHurry:
            if (process.is_draining && process.hurries_at == now && !is_stopped(unit, now)) {
                units_.close(unit, {}, now);
                look_whether_drained(unit, now);
            }
            break;
        case kGiveUp:
            if (process.is_draining && process.gives_up_at == now && !is_stopped(unit, now)) {
                process.is_draining = false;
                process.state = UnitState::not_ready;
                answer(unit, process.halt.number, now, process.next_mep, process.suspects);
            }
            break;
        case kLaunched:
            join(unit, now);
            break;
        case kHostUp:
            control_.hold(unit, host_down_until_[unit.value()] > now);
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
    control_.counted(unit, counters(unit, now));
    process = {.before = units_.counts(unit)};
    units_.shut(unit, now);
    control_.exited(now, unit, "SIGKILL");
    act(now);
}

void RunDriver::hold(UnitIndex unit, Time until, Time now) {
    Time& down_until = host_down_until_[unit.value()];
    down_until = std::max(down_until, until);
    control_.hold(unit, down_until > now);
    if (until != Time::never()) {
        wake(until, unit, kHostUp);
    }
}

void RunDriver::on_unreachable(UnitIndex unit, UnitIndex other) { of(unit).suspects.insert(other); }

void RunDriver::look_whether_drained(UnitIndex unit, Time now) {
    if (units_.is_drained(unit)) {
        of(unit).is_draining = false;
        wake(now, unit, kDrained);
    }
}

/// A process that was killed or reset since has nothing to answer.
void RunDriver::halted(UnitIndex unit, Time now) {
    Process& process = of(unit);
    if (process.session != process.halt.session || process.state != UnitState::running) {
        return;
    }
    process.state = UnitState::not_ready;
    process.next_mep = std::max(process.next_mep, units_.end(unit, now));
    answer(unit, process.halt.number, now, process.next_mep, process.suspects);
}

void RunDriver::join(UnitIndex unit, Time now) {
    Process& process = of(unit);
    process = {.session = ++sessions_, .made = now, .before = units_.counts(unit)};
    control_.joined(now, unit, process.session);
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
        look_whether_drained(unit, now);
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
    Process& process = of(unit);
    const bool runs = process.state == UnitState::running;
    const UnitCounts counted = units_.counts(unit);
    reports::Heartbeat heartbeat{.number = process.lease.sending(now),
                                 .pulse = {.epoch = process.epoch, .state = process.state},
                                 .counted = counters(unit, now)};
    if (runs) {
        heartbeat.pulse.beats = ++process.beats;
        heartbeat.pulse.steps = counted.steps - process.before.steps;
        heartbeat.pulse.waits = units_.waits(unit);
        heartbeat.pulse.suspects = {process.suspects.begin(), process.suspects.end()};
    }
    heartbeat.pulse.next_mep = counted.next_mep;
    control_.reported(now, unit, process.session, heartbeat);
    report_later(unit, now);
}

void RunDriver::answer(UnitIndex unit, std::uint64_t order, Time now, std::uint64_t next_mep,
                       const std::set<UnitIndex>& missing) {
    Process& process = of(unit);
    const reports::Answer answer{.number = process.lease.sending(now),
                                 .order = order,
                                 .state = process.state,
                                 .missing = {missing.begin(), missing.end()},
                                 .next_mep = next_mep,
                                 .counted = counters(unit, now)};
    control_.reported(now, unit, process.session, answer);
    report_later(unit, now);
}

/// Counters of the unit's current process.
NamedCounters RunDriver::counters(UnitIndex unit, Time now) const {
    namespace names = counter_names;
    const Process& process = processes_[unit.value()];
    const UnitCounts all = units_.counts(unit);
    const UnitCounts& before = process.before;
    NamedCounters counted;
    counted.by_name = {{names::elapsed_s, (now - process.made).seconds()},
                       {names::next_mep, static_cast<std::int64_t>(all.next_mep)},
                       {names::meps_granted, all.granted - before.granted},
                       {names::meps_built, all.built - before.built},
                       {names::meps_incomplete, all.incomplete - before.incomplete},
                       {names::meps_dropped, all.dropped - before.dropped},
                       {names::meps_discarded, all.discarded - before.discarded}};
    return counted;
}

// ---- outputs of the run control

/// Answers that units give meanwhile are handled by the same loop.
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
            losses_.push_back({now, unit.number.value()});
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
        join(launch.unit, now);  // before the run, all units are there
    } else {
        wake(now + launch_, launch.unit, kLaunched);
    }
}

void RunDriver::carry_out(const KillProcess& output, Time now) { kill(output.unit, now); }

void RunDriver::carry_out(const DropConnection& drop, Time now) {
    if (of(drop.unit).session == drop.session) {
        of(drop.unit).session = 0;
        units_.shut(drop.unit, now);
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
    } else if (obey(order.unit, order, now)) {
        answer(order.unit, order.number, now);
    }
}

bool RunDriver::obey(UnitIndex unit, const SendOrder& sent, Time now) {
    Process& process = of(unit);
    if (const auto* const configure = std::get_if<orders::Configure>(&sent.order)) {
        process.lease.set_length(configure->lease);
    } else if (const auto* const prepare = std::get_if<orders::Prepare>(&sent.order)) {
        process.state = UnitState::not_ready;
        process.epoch = prepare->epoch;
        process.suspects.clear();
        process.lease.begin(prepare->epoch);
        units_.prepare(unit, *prepare, now);
    } else if (std::holds_alternative<orders::Connect>(sent.order)) {
        process.state = UnitState::ready;
    } else if (const auto* const start = std::get_if<orders::Start>(&sent.order)) {
        if (started_ != process.epoch) {
            started_ = process.epoch;
            first_mep_ = start->first_mep;
            ledger_.begin(first_mep_, control_.roles().builders(), totals());
        }
        process.state = UnitState::running;
        process.next_mep = start->first_mep;
        units_.start(unit, start->first_mep, start->mep_end, now);
        renew(unit, start->last_report, start->mep_end, now);
    } else if (const auto* const halt = std::get_if<orders::Halt>(&sent.order)) {
        if (process.state == UnitState::running) {
            process.halt = sent;
            process.is_draining = true;
            process.hurries_at = now + halt->timeout / 2;
            process.gives_up_at = now + halt->timeout;
            wake(process.hurries_at, unit, kHurry);
            wake(process.gives_up_at, unit, kGiveUp);
            units_.close(unit, halt->lost, now);
            look_whether_drained(unit, now);
            return false;
        }
        process.state = UnitState::not_ready;
    } else if (std::holds_alternative<orders::Reset>(sent.order)) {
        process = {.session = process.session,
                   .made = now,
                   .before = units_.counts(unit),
                   .lease = std::move(process.lease),
                   .waiting = std::move(process.waiting)};
        units_.shut(unit, now);
    } else if (const auto* const renewed = std::get_if<orders::Renew>(&sent.order)) {
        if (renewed->epoch == process.epoch) {
            renew(unit, renewed->last_report, renewed->mep_end, now);
        }
        return false;
    } else {
        process.state = UnitState::not_ready;  // to exit: a simulated run just ends
    }
    return true;
}

void RunDriver::renew(UnitIndex unit, std::uint64_t last_report, std::uint64_t mep_end, Time now) {
    Process& process = of(unit);
    const UnitLease::Leased leased = process.lease.renew(process.epoch, last_report, mep_end);
    process.leased_until = leased.until;
    units_.lease(unit, now < leased.until ? leased.mep_end : 0, now);
    if (now < leased.until) {
        wake(leased.until, unit, kLeaseOver);
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

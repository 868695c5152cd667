#include "protocol/run/run_control.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace daqloom::protocol {

namespace {

/// The operator's command that replaces one goal by another, as a verb.
std::string_view command_of(RunGoal former, RunGoal goal) {
    switch (goal) {
        case RunGoal::running:
            return "starts";
        case RunGoal::ended:
            return "ends";
        case RunGoal::idle:
        case RunGoal::ready:
            break;
    }
    return former == RunGoal::running ? "stops" : "configures";
}

constexpr std::size_t most_in_message = 4;

/// Phases that end when all members have answered an order.
constexpr bool awaits_answers(RunPhase phase) {
    return phase == RunPhase::preparing || phase == RunPhase::connecting ||
           phase == RunPhase::starting || phase == RunPhase::halting;
}

/// Phases in which members answer MEPs.
constexpr bool is_leasing(RunPhase phase) {
    return is_building(phase) || phase == RunPhase::halting || phase == RunPhase::attaching;
}

/// The first few units or hosts, in words.
template <class Values, class Words>
std::string first_of(const Values& values, const char* between, Words words) {
    std::vector<std::string> text;
    for (const auto& value : values) {
        if (text.size() < most_in_message) {
            text.push_back(words(value));
        }
    }
    return fmt::format("{}", fmt::join(text, between));
}

}  // namespace

// ---- inputs

void RunControl::launch(base::Time now) {
    for (UnitView& unit : units_) {
        launch_process(now, unit);
    }
}

void RunControl::resume(base::Time now, const RunSnapshot& snapshot) {
    restore(now, snapshot);
    // Longer than units need to answer a half-sent order, after which they join again.
    const base::Time answer =
        resumed_ == RunPhase::connecting ? plan_.order_timeout / 2 : plan_.fault_timeout;
    deadline_ = now + answer + base::seconds(2);
    note(now, fmt::format("{}: the run control replaces one that was {}",
                          name_of(RunPhase::attaching), name_of(resumed_)));
    advance(now);
}

bool RunControl::rejoined(base::Time now, UnitIndex number, std::uint64_t session,
                          const reports::Rejoin& rejoin) {
    UnitView& unit = view(number);
    if (!unit.is_awaited || rejoin.epoch > epoch_ || rejoin.state == UnitState::error) {
        return false;
    }
    unit.is_awaited = false;
    unit.session = session_ = session;
    unit.state = rejoin.state;
    unit.rejoined_epoch = rejoin.epoch;
    unit.last_report_at = now;
    unit.member_since = now;
    leases_.rejoined(number, rejoin.epoch, rejoin.started, session);
    note(now, fmt::format("unit {} has joined again", number.value()));
    advance(now);
    return true;
}

bool RunControl::is_free(UnitIndex number) const {
    const Standing standing = unit(number).standing;
    return goal_ != RunGoal::ended &&
           (standing == Standing::absent || standing == Standing::lost || unit(number).is_awaited);
}

void RunControl::joined(base::Time now, UnitIndex number, std::uint64_t session) {
    UnitView& unit = view(number);
    if (unit.session != 0) {
        out_.emplace_back(DropConnection{number, unit.session});
    }
    lose(now, unit, "another process has replaced its process");
    unit.session = session_ = session;
    unit.last_report = 0;
    unit.state = UnitState::not_ready;
    configure(now, unit);
    advance(now);
}

void RunControl::configure(base::Time now, UnitView& unit) {
    unit.standing = Standing::joining;
    unit.last_report_at = now;
    unit.join_by.reset();
    unit.returns_at.reset();
    send_order(now, unit,
               orders::Configure{unit.number, plan_.units, plan_.heartbeat, plan_.fault_timeout,
                                 plan_.control_grace},
               plan_.launch_timeout);
}

std::optional<reports::Refusal> RunControl::reported(base::Time now, UnitIndex number,
                                                     std::uint64_t session,
                                                     const reports::Report& report) {
    UnitView& unit = view(number);
    if (session != unit.session) {
        return reports::Refusal::session;
    }
    unit.last_report_at = now;
    const auto report_number = std::visit([](const auto& each) { return each.number; }, report);
    const auto* const last = std::get_if<reports::Heartbeat>(&report);
    if (last != nullptr && last->ended && report_number != 0 && report_number <= unit.last_report) {
        return {};  // sent again, as the unit does not know that it was received
    }
    unit.last_report = report_number;
    changes_ += last != nullptr && last->ended ? 1 : 0;
    Refusal refusal;
    if (const auto* const answer = std::get_if<reports::Answer>(&report)) {
        refusal = on_answer(now, unit, *answer);
    } else {
        refusal = on_heartbeat(now, unit, std::get<reports::Heartbeat>(report));
        if (!refusal && is_leasing(phase_) && members_.contains(number) &&
            leases_.is_leased(number, epoch_)) {
            renew(now, unit);
        }
    }
    advance(now);
    return refusal;
}

void RunControl::counted(UnitIndex number, const NamedCounters& counters) {
    read(view(number), counters);
    leases_.read(number);
    ++changes_;
}

void RunControl::left(base::Time now, UnitIndex number, std::uint64_t session) {
    UnitView& unit = view(number);
    if (session != unit.session) {
        return;
    }
    unit.session = 0;
    lose(now, unit, "its connection ended");
    unit.standing = Standing::absent;
    unit.join_by = now + plan_.launch_timeout;
    advance(now);
}

void RunControl::exited(base::Time now, UnitIndex number, const std::string& how) {
    UnitView& unit = view(number);
    unit.process = false;
    unit.session = 0;
    lose(now, unit, fmt::format("its process ended: {}", how));
    unit.standing = Standing::absent;
    unit.join_by.reset();
    // The end of a process is a more precise reason than the loss of the unit.
    unit.reason = fmt::format("its process ended: {}", how);
    if (!unit.returns_at && plan_.restart) {
        unit.returns_at = now + pause(unit);
    }
    if (!was_ready_ && goal_ != RunGoal::ended && phase_ != RunPhase::attaching) {
        fail(now,
             fmt::format("unit {} could not start: its process ended ({})", number.value(), how));
    }
    advance(now);
}

void RunControl::want(base::Time now, RunGoal goal) {
    if (goal_ == RunGoal::ended) {
        return;
    }
    note(now, fmt::format("the operator {} the run", command_of(goal_, goal)));
    goal_ = goal;
    for (UnitView& unit : units_) {
        unit.reported_not_written = false;
    }
    if (phase_ == RunPhase::error && (goal == RunGoal::ready || goal == RunGoal::running)) {
        failure_.clear();
        troubles_ = 0;
        fruitless_ = 0;
        wait(now);
    }
    advance(now);
}

void RunControl::reschedule(base::Time now, const RunSlots& slots, const std::string& why) {
    if (slots.readouts == slots_.readouts && slots.builders == slots_.builders) {
        return;
    }
    slots_ = slots;
    broken_ = broken_.empty() ? why : broken_;
    advance(now);
}

base::expected<void> RunControl::reconfigure(base::Time now, const RunPlan& plan,
                                             std::uint64_t first_mep) {
    const bool may_build = is_building(phase_) || phase_ == RunPhase::halting;
    if (may_build || goal_ == RunGoal::ended || plan.units != plan_.units) {
        return base::failure(
            fmt::format("the run of {} units is {}; its units can be configured anew while it is "
                        "stopped, and their number stays",
                        plan_.units, name_of(phase_)));
    }
    note(now, "the operator configures the run anew");
    ledger_.end(leases_.first_free(), plan.takes_turns);
    leases_.answered(std::max(leases_.first_free(), first_mep));
    leases_.follow(plan);
    plan_ = plan;
    roles_ = Roles(plan).without(excluded_sources());
    slots_ = roles_.slots();
    goal_ = RunGoal::ready;
    failure_.clear();
    troubles_ = fruitless_ = 0;
    wait(now);
    is_reconfigured_ = true;
    for (UnitView& unit : units_) {
        unit.reported_not_written = false;
        if (unit.session != 0) {
            configure(now, unit);
        }
    }
    advance(now);
    return {};
}

base::expected<void> RunControl::exclude(base::Time now, const Members& units, bool sources) {
    Members left;
    for (const UnitView& unit : units_) {
        if (!unit.is_excluded && (sources || !units.contains(unit.number))) {
            left.insert(unit.number);
        }
    }
    Members silent = excluded_sources();
    if (sources) {
        silent.insert(units.begin(), units.end());
    }
    if (!roles_.without(silent).among(left).is_viable()) {
        return base::failure(std::string("the other units could build no events"));
    }
    for (const UnitIndex unit : units) {
        (sources ? view(unit).is_source_excluded : view(unit).is_excluded) = true;
    }
    regroup_if_members(now, units, "excludes", sources);
    return {};
}

void RunControl::include(base::Time now, const Members& units, bool sources) {
    for (const UnitIndex unit : units) {
        (sources ? view(unit).is_source_excluded : view(unit).is_excluded) = false;
    }
    regroup_if_members(now, units, "includes", sources);
}

void RunControl::regroup_if_members(base::Time now, const Members& units, const char* change,
                                    bool sources) {
    roles_ = roles_.without(excluded_sources());
    std::vector<std::uint32_t> numbers;
    std::ranges::transform(units, std::back_inserter(numbers), &UnitIndex::value);
    const std::string text =
        fmt::format("the operator {} {}{} {}", change, sources ? "the source of " : "",
                    numbers.size() == 1 ? "unit" : "units", fmt::join(numbers, ", "));
    note(now, text);
    const bool concerns =
        std::ranges::any_of(units, [&](UnitIndex unit) { return members_.contains(unit); });
    if (concerns && broken_.empty()) {
        broken_ = text;
    }
    advance(now);
}

Members RunControl::excluded_sources() const {
    Members found;
    for (const UnitView& unit : units_) {
        if (unit.is_source_excluded) {
            found.insert(unit.number);
        }
    }
    return found;
}

void RunControl::reset(base::Time now, UnitIndex number) {
    UnitView& unit = view(number);
    note(now, fmt::format("the operator resets unit {}", number.value()));
    unit.failures = 0;
    unit.reset_by_operator = true;
    lose(now, unit, "reset by the operator");
    if (unit.standing == Standing::lost) {
        send_reset(now, unit);
    } else {
        unit.returns_at = now;
    }
    advance(now);
}

void RunControl::tick(base::Time now) {
    const base::Time gap = now - ticked_at_;
    ticked_at_ = now;
    if (now - beat_at_ >= plan_.heartbeat) {
        beat_at_ = now;
        ++beat_;
    }
    if (gap > plan_.fault_timeout / 2) {  // the run control stood still: its units are not late
        forgive(gap);
    }
    if (phase_ != RunPhase::ending && phase_ != RunPhase::ended) {
        watch_all(now);
    }
    if (phase_ == RunPhase::running) {
        watch_members(now);
    }
    if (goal_ != RunGoal::ended) {
        bring_back(now);
    }
    if (awaits_answers(phase_) && now >= deadline_) {
        for (UnitView* unit : unanswered()) {
            lose(now, *unit,
                 fmt::format("no answer to {}", unit->pending ? unit->pending->what : "us"));
        }
    }
    advance(now);
}

// ---- reports

RunControl::Refusal RunControl::on_answer(base::Time now, UnitView& unit,
                                          const reports::Answer& answer) {
    if (answer.order > order_) {
        return reports::Refusal::unasked;
    }
    if (!unit.pending || answer.order != unit.pending->number) {
        return {};  // answer to an order that another has replaced
    }
    const std::string what = std::move(unit.pending->what);
    unit.pending.reset();
    unit.state = answer.state;
    read(unit, answer.counters);
    if (what == "prepare") {
        leases_.prepared(unit.number, unit.session);
    }
    if (!answer.failure.empty()) {
        lose(now, unit, fmt::format("{} failed: {}", what, answer.failure));
        if (what == "configure" && (!was_ready_ || is_reconfigured_)) {
            fail(now, fmt::format("unit {} cannot be configured: {}", unit.number.value(),
                                  answer.failure));
        }
    } else if (unit.standing == Standing::joining) {
        unit.standing = Standing::available;
        unit.reset_by_operator = false;
        note(now, fmt::format("unit {} is available", unit.number.value()));
    } else if (members_.contains(unit.number)) {
        unit.answer = answer;
    }
    return {};
}

RunControl::Refusal RunControl::on_heartbeat(base::Time now, UnitView& unit,
                                             const reports::Heartbeat& report) {
    const reports::Pulse& pulse = report.pulse;
    if (pulse.epoch > epoch_) {
        return reports::Refusal::epoch;
    }
    read(unit, report.counters);
    check_files(now, unit);
    leases_.answered(pulse.next_mep);
    if (report.ended) {
        leases_.last_words(unit.number, *report.ended);
        return {};
    }
    const bool is_member = members_.contains(unit.number);
    const bool is_connected = unit.state == UnitState::ready || unit.state == UnitState::running;
    if (is_connected && is_member && !unit.pending && pulse.epoch != epoch_) {
        return reports::Refusal::epoch;
    }
    if (unit.standing == Standing::lost) {
        return pulse.epoch == epoch_ ? Refusal() : reports::Refusal::epoch;
    }
    if (pulse.state == UnitState::error && unit.standing == Standing::available) {
        unit.state = pulse.state;
        lose(now, unit, pulse.failure.empty() ? "it reports an error" : pulse.failure);
    } else if (is_member && pulse.epoch == epoch_) {
        progress(now, unit, pulse);
    }
    return {};
}

void RunControl::check_files(base::Time now, UnitView& unit) {
    const NamedCounters& totals = unit.tally.totals();
    const std::int64_t lost = totals.count(counter_names::meps_not_written);
    const bool is_news = lost > unit.not_written && !unit.reported_not_written;
    unit.not_written = lost;
    if (!is_news) {
        return;
    }
    unit.reported_not_written = true;
    std::string text = fmt::format("unit {} cannot write what it builds: {}", unit.number.value(),
                                   totals.causes_of_loss());
    if (plan_.stops_when_unwritable && goal_ == RunGoal::running) {
        goal_ = RunGoal::ready;
        text += "; the run stops";
    }
    note(now, std::move(text), About::unit);
}

void RunControl::renew(base::Time now, const UnitView& unit) {
    const std::uint64_t mep_end = leases_.renew(now, unit.number);
    out_.emplace_back(SendOrder{unit.number, unit.session, 0,
                                orders::Renew{epoch_, mep_end, unit.last_report, beat_}});
}

void RunControl::progress(base::Time now, UnitView& unit, const reports::Pulse& pulse) {
    const std::optional<reports::Pulse> before = std::exchange(unit.pulse, pulse);
    if (!before || !pulse.beats || pulse.beats != before->beats) {
        unit.beat_at = now;
    }
    if (!before || !pulse.steps || pulse.steps != before->steps || pulse.waits) {
        progress_at_ = now;
    }
    if (before && before->steps.value_or(0) < pulse.steps.value_or(0)) {
        has_built_ = true;
    }
    const bool suspects = std::ranges::any_of(
        pulse.suspects, [&](UnitIndex suspect) { return members_.contains(suspect); });
    if (!suspected_at_ && suspects) {
        suspected_at_ = now;
    }
}

// ---- time

void RunControl::forgive(base::Time gap) {
    for (UnitView& unit : units_) {
        unit.last_report_at += gap;
        unit.beat_at += gap;
        if (unit.pending) {
            unit.pending->until += gap;
        }
        if (unit.join_by) {
            *unit.join_by += gap;
        }
    }
    deadline_ += gap;
    progress_at_ += gap;
    if (suspected_at_) {
        *suspected_at_ += gap;
    }
}

void RunControl::watch_all(base::Time now) {
    for (UnitView& unit : units_) {
        const bool is_trusted = !unit.is_awaited && (unit.standing == Standing::joining ||
                                                     unit.standing == Standing::available);
        const std::optional<PendingOrder> pending = unit.pending;
        if (const base::Time silent = now - unit.last_report_at;
            is_trusted && silent > plan_.fault_timeout) {
            lose(now, unit, fmt::format("silent for {:.1f} s", silent.seconds()));
            if (pending && pending->what == "reset") {
                end_process(now, unit);
            }
        } else if (!members_.contains(unit.number) && pending && now >= pending->until) {
            lose(now, unit, fmt::format("no answer to {}", pending->what));
            end_process(now, unit);
        } else if (unit.join_by && now >= *unit.join_by && unit.process) {
            unit.join_by.reset();
            note(now, fmt::format("unit {} did not join in time", unit.number.value()),
                 About::unit);
            end_process(now, unit);
        }
    }
}

void RunControl::watch_members(base::Time now) {
    const base::Time timeout = plan_.fault_timeout;
    for (UnitView* unit : of(members_)) {
        if (now - unit->beat_at > timeout) {
            lose(now, *unit, "its data thread is stuck");
        }
    }
    if (!broken_.empty()) {
        return;
    }
    if (now - running_since_ > timeout * healthy_timeouts) {
        troubles_ = 0;
    }
    if (suspected_at_ && now - *suspected_at_ > timeout / 2) {
        on_suspicion(now);
    } else if (now - progress_at_ > timeout) {
        on_trouble(now, "event building has stalled", suspicions_of_members());
    }
}

void RunControl::on_suspicion(base::Time now) {
    const Suspicions suspicions = suspicions_of_members();
    if (suspicions.empty()) {
        suspected_at_.reset();
        return;
    }
    const base::Time since = suspected_at_.value_or(base::Time::zero());
    std::vector<UnitIndex> unreachable;
    for (const auto& [number, by] : suspicions) {
        if (is_confirmed(by.size(), members_.size() - 1) || unit(number).last_report_at < since) {
            unreachable.push_back(number);
        }
    }
    if (!unreachable.empty() && unreachable.size() < members_.size()) {
        for (const UnitIndex number : unreachable) {
            const std::string by = first_of(suspicions.at(number), " and ", [](UnitIndex reporter) {
                return fmt::format("unit {}", reporter.value());
            });
            lose(now, view(number), fmt::format("unreachable according to {}", by));
        }
        return;
    }
    std::set<std::pair<UnitIndex, UnitIndex>> pairs;
    for (const auto& [number, by] : suspicions) {
        for (const UnitIndex reporter : by) {
            pairs.insert(std::minmax(number, reporter));
        }
    }
    const std::string between = first_of(pairs, ", ", [](const auto& pair) {
        return fmt::format("{} and {}", pair.first.value(), pair.second.value());
    });
    on_trouble(now, fmt::format("a connection is cut, between {}", between), suspicions);
}

void RunControl::on_trouble(base::Time now, const std::string& what, const Suspicions& suspicions) {
    ++troubles_;
    fruitless_ = has_built_ ? 0 : fruitless_ + 1;
    if (troubles_ > 1 && !suspicions.empty()) {
        lose(now, view(worst(suspicions)),
             fmt::format("{}, and new connections did not help", what));
    } else if (fruitless_ >= most_fruitless) {
        fail(now, fmt::format("{}, and regrouping {} times did not help", what, most_fruitless));
    } else {
        broken_ = what;
    }
}

Suspicions RunControl::suspicions_of_members() const {
    Suspicions found;
    for (const UnitIndex number : members_) {
        if (const auto& pulse = unit(number).pulse) {
            add_suspicions(found, number, pulse->suspects, members_);
        }
    }
    return found;
}

void RunControl::bring_back(base::Time now) {
    for (UnitView& unit : units_) {
        if (unit.is_host_down || unit.is_excluded || !unit.returns_at || now < *unit.returns_at) {
            continue;
        }
        if (unit.standing == Standing::absent && !unit.process) {
            launch_process(now, unit);
        } else if (unit.standing == Standing::lost && unit.last_report_at > unit.lost_at &&
                   !unit.pending) {
            send_reset(now, unit);
        }
    }
}

}  // namespace daqloom::protocol

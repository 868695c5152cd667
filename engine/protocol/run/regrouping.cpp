#include "protocol/run/regrouping.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "protocol/run/suspicions.hpp"

namespace daqloom::protocol {

namespace {

constexpr std::size_t most_named = 20;
constexpr std::size_t most_reasons = 3;

std::string description(const RoleHolders& moved) {
    const auto whose = moved.unit.value();
    const bool reads = moved.readout != UnitIndex::none();
    const bool builds = moved.builder != UnitIndex::none();
    if (!reads && !builds) {
        return fmt::format("no unit holds the roles of unit {}", whose);
    }
    if (moved.readout == moved.builder) {
        return fmt::format("the roles of unit {} move to unit {}", whose, moved.readout.value());
    }
    if (!reads || !builds) {
        return fmt::format("the {} unit of unit {} moves to unit {}", reads ? "readout" : "builder",
                           whose, (reads ? moved.readout : moved.builder).value());
    }
    return fmt::format("the readout unit of unit {} moves to unit {}, its builder unit to unit {}",
                       whose, moved.readout.value(), moved.builder.value());
}

template <class Values>
auto first_of(const Values& values, std::size_t most) {
    return fmt::join(std::span(values).first(std::min(values.size(), most)), ", ");
}

}  // namespace

void Regrouping::advance(base::Time now) {
    while (step(now)) {
    }
}

bool Regrouping::step(base::Time now) {
    const bool ends = goal_ == RunGoal::ended;
    switch (phase_) {
        case RunPhase::waiting:
            return step_waiting(now);
        case RunPhase::attaching:
            return step_attaching(now);
        case RunPhase::preparing:
        case RunPhase::connecting:
        case RunPhase::ready:
            if (!broken_.empty() || ends) {
                return regroup(now);
            }
            break;
        case RunPhase::starting:
        case RunPhase::running:
            if (!broken_.empty()) {
                return halt(now);
            }
            break;
        case RunPhase::halting:
            break;
        case RunPhase::error:
            return ends && end(now);
        case RunPhase::ending:
            return step_ending(now);
        case RunPhase::ended:
            return false;
    }
    if (phase_ == RunPhase::ready || phase_ == RunPhase::running) {
        return step_settled(now);
    }
    if (!unanswered().empty()) {
        return false;
    }
    answered(now);
    return true;
}

bool Regrouping::step_waiting(base::Time now) {
    if (goal_ == RunGoal::ended) {
        return end(now);
    }
    if (goal_ == RunGoal::idle) {
        deadline_ = std::max(deadline_, now + plan_.launch_timeout);
        return false;
    }
    const Members here = available();
    const Roles next = roles_.among(here);
    const bool is_late = now >= deadline_;
    const auto is_at_home = [&](const UnitView& unit) {
        return here.contains(unit.number) || unit.is_excluded || !roles_.is_home(unit.number);
    };
    const bool awaits_others =
        is_reconfigured_ && std::ranges::any_of(units_, [](const UnitView& unit) {
            return unit.standing == Standing::joining && !unit.is_excluded;
        });
    if (std::ranges::all_of(units_, is_at_home) || (is_late && next.is_complete()) ||
        (was_ready_ && next.is_viable() && !awaits_others)) {
        return prepare(now);
    }
    if (!is_late) {
        return false;
    }
    std::vector<std::uint32_t> absent;
    for (const UnitView& unit : units_) {
        if (!here.contains(unit.number) && !unit.is_excluded) {
            absent.push_back(unit.number.value());
        }
    }
    fail(now,
         fmt::format("{} of {} units did not join within {:g} s: {}", absent.size(), plan_.units,
                     plan_.launch_timeout.seconds(), first_of(absent, most_named)));
    return true;
}

/// Continues the run of another run control once all its units have joined, or at the deadline: in
/// the same epoch if no member has changed meanwhile, else by a regrouping.
bool Regrouping::step_attaching(base::Time now) {
    for (UnitView& unit : units_) {
        if (unit.is_awaited && now < deadline_) {
            return false;
        }
    }
    for (UnitView& unit : units_) {
        if (unit.is_awaited) {
            lose(now, unit, "it did not join the new run control in time");
            unit.standing = Standing::absent;
            unit.join_by = now + plan_.launch_timeout;
        }
    }
    if (goal_ == RunGoal::ended) {
        return end(now);
    }
    const auto all_are = [&](UnitState state) {
        return std::ranges::all_of(of(members_), [&](const UnitView* unit) {
            return unit->state == state && unit->rejoined_epoch == epoch_;
        });
    };
    const bool is_whole = broken_.empty() && !members_.empty();
    if (is_whole && is_building(resumed_) && all_are(UnitState::running)) {
        begin_running(now, fmt::format("epoch {} continues", epoch_));
        return true;
    }
    if (is_whole && resumed_ == RunPhase::ready && all_are(UnitState::ready)) {
        enter(now, RunPhase::ready, fmt::format("epoch {} continues", epoch_));
        return true;
    }
    if (resumed_ == RunPhase::waiting || resumed_ == RunPhase::error) {
        members_ = available();
        order_halt(now);  // orders to halt may have been lost
        members_.clear();
        if (resumed_ == RunPhase::waiting) {
            return wait(now);
        }
        enter(now, RunPhase::error, failure_);
        return true;
    }
    broken_ = broken_.empty() ? "another run control has replaced the former one" : broken_;
    return halt(now);
}

bool Regrouping::step_settled(base::Time now) {
    if (const auto newcomers = this->newcomers(); !newcomers.empty()) {
        broken_ = fmt::format("{} {} can take part", newcomers.size() == 1 ? "unit" : "units",
                              fmt::join(newcomers, ", "));
        return true;
    }
    const bool runs = phase_ == RunPhase::running;
    if (runs && goal_ != RunGoal::running) {
        return halt(now);
    }
    if (!runs && goal_ == RunGoal::running) {
        return start(now);
    }
    return !runs && goal_ == RunGoal::idle && wait(now);
}

void Regrouping::answered(base::Time now) {
    switch (phase_) {
        case RunPhase::preparing:
            connect(now);
            break;
        case RunPhase::connecting:
            connected(now);
            break;
        case RunPhase::starting:
            begin_running(now, fmt::format("from MEP {}", first_mep_));
            break;
        default:
            halted(now);
    }
}

void Regrouping::begin_running(base::Time now, const std::string& why) {
    enter(now, RunPhase::running, why);
    was_ready_ = true;
    running_since_ = progress_at_ = now;
    suspected_at_.reset();
    has_built_ = false;
    for (UnitView* unit : of(members_)) {
        unit->beat_at = now;
        unit->pulse.reset();
    }
}

bool Regrouping::halt(base::Time now) {
    enter(now, RunPhase::halting, broken_);
    broken_.clear();
    order_halt(now);
    return true;
}

void Regrouping::order_halt(base::Time now) {
    orders::Halt order{.lost = {}, .timeout = plan_.fault_timeout};
    for (const UnitView& unit : units_) {
        if (!members_.contains(unit.number)) {
            order.lost.push_back(unit.number);
        }
    }
    if (!members_.empty()) {
        leases_.left_out(members_);
    }
    // Longer than the unit's own time limit, so that it can report which units did not drain.
    order_members(now, order, plan_.fault_timeout * 2 + plan_.heartbeat * 2);
}

void Regrouping::halted(base::Time now) {
    Suspicions suspicions;
    for (const UnitView* unit : of(members_)) {
        leases_.answered(unit->answer->next_mep);
        add_suspicions(suspicions, unit->number, unit->answer->missing, members_);
    }
    first_mep_ = next_mep();
    const std::size_t others = members_.empty() ? 0 : members_.size() - 1;
    for (const auto& [unit, by] : suspicions) {
        if (is_confirmed(by.size(), others)) {
            lose(now, view(unit), "it did not drain");
        }
    }
    regroup(now);
}

bool Regrouping::regroup(base::Time now) {
    if (goal_ == RunGoal::ended) {
        return end(now);
    }
    if (goal_ == RunGoal::idle) {
        return wait(now);
    }
    return prepare(now);
}

bool Regrouping::prepare(base::Time now) {
    broken_.clear();
    members_.clear();
    is_reconfigured_ = false;
    const Roles next = roles_.among(available()).in(slots_);
    const Members members = next.holders();
    if (!next.is_viable()) {
        // After the phase `waiting`, no further units can be waited for.
        if (plan_.restart && was_ready_ && phase_ != RunPhase::waiting) {
            note(now,
                 fmt::format("too few units are left, {}: waiting for others", members.size()));
            return wait(now);
        }
        std::vector<std::string> reasons;
        for (const UnitView& unit : units_) {
            if (!unit.reason.empty() && std::ranges::count(reasons, unit.reason) == 0 &&
                reasons.size() < most_reasons) {
                reasons.push_back(unit.reason);
            }
        }
        const std::string why =
            reasons.empty() ? "" : fmt::format(" ({})", fmt::join(reasons, "; "));
        fail(now,
             fmt::format("too few units are left, {} of {}{}", members.size(), plan_.units, why));
        return true;
    }
    members_ = members;
    const std::vector<RoleHolders> before = roles_.moved();
    roles_ = next;
    const std::vector<RoleHolders> moved = roles_.moved();
    ++epoch_;
    enter(now, RunPhase::preparing, fmt::format("epoch {}, {} units", epoch_, members.size()));
    for (UnitView* unit : of(members)) {
        unit->member_since = unit->member_since.value_or(now);
    }
    for (const RoleHolders& each : moved) {
        if (std::ranges::count(before, each) == 0) {
            note(now, description(each), About::unit);
        }
    }
    orders::Prepare order{epoch_, {members.begin(), members.end()}, moved};
    order.slots = slots_;
    if (slots_.is_rearranged()) {
        order.readouts = slots_.readouts;
        order.builders = slots_.builders;
    }
    order_members(now, order, plan_.order_timeout);
    return true;
}

void Regrouping::connect(base::Time now) {
    enter(now, RunPhase::connecting);
    orders::Connect order{.timeout = plan_.order_timeout / 2};
    for (const UnitView* unit : of(members_)) {
        order.addresses.push_back({unit->number, unit->answer->address});
    }
    order_members(now, order, plan_.order_timeout);
}

void Regrouping::connected(base::Time now) {
    Suspicions suspicions;
    for (const UnitView* unit : of(members_)) {
        add_suspicions(suspicions, unit->number, unit->answer->missing, members_);
    }
    if (suspicions.empty()) {
        connect_tries_ = 0;
        was_ready_ = true;
        enter(now, RunPhase::ready);
        return;
    }
    ++connect_tries_;
    if (connect_tries_ > 1) {
        lose(now, view(worst(suspicions)), "others cannot connect to it");
    }
    broken_ = "not all units could connect";
}

bool Regrouping::start(base::Time now) {
    const std::uint64_t first = leases_.first_free();
    if (first > next_mep()) {
        note(now, fmt::format("MEPs {} to {} are skipped: units of unknown progress may have "
                              "answered them",
                              next_mep(), first - 1));
    }
    first_mep_ = first;
    const Members readouts = roles_.readouts();
    std::map<UnitIndex, Leases::Member> members;
    for (const UnitView* unit : of(members_)) {
        members.emplace(unit->number,
                        Leases::Member{unit->session, readouts.contains(unit->number)});
    }
    leases_.begin(now, epoch_, first, members);
    ledger_.begin(first, roles_.builders(), [this](UnitIndex number) { return totals(number); });
    enter(now, RunPhase::starting);
    deadline_ = now + plan_.order_timeout;
    for (UnitView* unit : of(members_)) {
        send_order(now, *unit,
                   orders::Start{first, leases_.mep_end(unit->number), unit->last_report},
                   plan_.order_timeout);
    }
    return true;
}

bool Regrouping::wait(base::Time now) {
    members_.clear();
    broken_.clear();
    deadline_ = now + plan_.launch_timeout;
    enter(now, RunPhase::waiting);
    return true;
}

void Regrouping::fail(base::Time now, const std::string& sentence) {
    if (is_building(phase_)) {
        order_halt(now);
    }
    members_.clear();
    broken_.clear();
    if (failure_.empty()) {
        failure_ = sentence;
    }
    enter(now, RunPhase::error, sentence);
}

bool Regrouping::end(base::Time now) {
    members_.clear();
    broken_.clear();
    enter(now, RunPhase::ending);
    deadline_ = now + plan_.fault_timeout * 2;
    finish_by_ = now + plan_.finish_timeout;
    for (UnitView& unit : units_) {
        unit.returns_at.reset();
        if (unit.session != 0) {
            send_order(now, unit, orders::Exit{}, plan_.order_timeout);
        } else if (unit.process) {
            out_.emplace_back(KillProcess{unit.number});
        }
    }
    return true;
}

bool Regrouping::step_ending(base::Time now) {
    std::vector<UnitView*> left;
    for (UnitView& unit : units_) {
        if (unit.session != 0 || unit.process) {
            left.push_back(&unit);
        }
    }
    if (left.empty()) {
        enter(now, RunPhase::ended);
        return true;
    }
    if (now < deadline_) {
        return false;
    }
    deadline_ = now + plan_.fault_timeout * 2;
    for (const UnitView* unit : left) {
        if (now < finish_by_ && now - unit->last_report_at <= plan_.fault_timeout) {
            continue;  // it is finishing its files
        }
        if (unit->process) {
            out_.emplace_back(KillProcess{unit->number});
        } else {
            out_.emplace_back(DropConnection{unit->number, unit->session});
        }
    }
    return false;
}

void Regrouping::order_members(base::Time now, const Order& order, base::Time timeout) {
    deadline_ = now + timeout;
    for (UnitView* unit : of(members_)) {
        send_order(now, *unit, order, timeout);
    }
}

std::vector<UnitView*> Regrouping::unanswered() {
    std::vector<UnitView*> found = of(members_);
    std::erase_if(found, [](const UnitView* unit) { return unit->answer.has_value(); });
    return found;
}

std::vector<std::uint32_t> Regrouping::newcomers() const {
    const Members here = available();
    std::vector<std::uint32_t> found;
    if (std::ranges::includes(members_, here)) {
        return found;
    }
    for (const UnitIndex unit : roles_.among(here).holders()) {
        if (!members_.contains(unit)) {
            found.push_back(unit.value());
        }
    }
    return found;
}

Members Regrouping::available() const {
    Members found;
    for (const UnitView& unit : units_) {
        if (unit.standing == Standing::available && !unit.is_excluded) {
            found.insert(unit.number);
        }
    }
    return found;
}

}  // namespace daqloom::protocol

// A run control in virtual time, with units that obey at once unless a test makes them fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "protocol/run/run_control.hpp"

namespace daqloom::protocol {

inline constexpr UnitIndex no_unit = UnitIndex::none();

inline UnitIndex unit_at(std::uint32_t number) { return UnitIndex(number); }

inline std::vector<UnitIndex> units_at(std::initializer_list<std::uint32_t> numbers) {
    std::vector<UnitIndex> found;
    for (const std::uint32_t number : numbers) {
        found.push_back(unit_at(number));
    }
    return found;
}

inline Members members_of(std::initializer_list<std::uint32_t> numbers) {
    Members found;
    for (const std::uint32_t number : numbers) {
        found.insert(unit_at(number));
    }
    return found;
}

/// Units report once per heartbeat interval, and the run control gets the time twice per interval.
/// While all members run and none is broken, they build a MEP every millisecond.
class UnitsByHand {
  public:
    struct Unit {
        bool has_process = false;
        bool is_silent = false;                ///< it neither obeys nor reports, until `go_on`
        bool is_stuck = false;                 ///< its data thread stands still
        bool is_idle = false;                  ///< it makes no progress
        bool waits = false;                    ///< for its own source
        std::set<UnitIndex> suspects = {};     ///< while it runs
        std::set<UnitIndex> unreachable = {};  ///< when it connects
        std::string fails = {};                ///< the order that it cannot carry out

        std::uint64_t session = 0;
        std::uint32_t epoch = 0;
        UnitState state = UnitState::not_ready;
        std::uint64_t reports = 0;
        std::uint64_t beats = 0;
        std::uint64_t steps = 0;
        std::uint64_t next_mep = 0;  ///< as last reported
        std::vector<SendOrder> waiting = {};
    };

    explicit UnitsByHand(const RunPlan& plan) : control(plan), units(plan.units) {
        control.launch(now);
        act();
    }

    /// Lets up to `span` pass in half heartbeat intervals, until `until()`. Returns its last value.
    bool pass(
        base::Time span, const std::function<bool()>& until = [] { return false; }) {
        const base::Time half = control.plan().heartbeat / 2;
        for (const base::Time end = now + span; now < end && !until();) {
            now += half;
            if (++halves_ % 2 == 0) {
                beat();
            }
            control.tick(now);
            act();
        }
        return until();
    }
    bool pass_to(RunPhase phase, base::Time span = base::seconds(10)) {
        return pass(span, [&] { return control.phase() == phase; });
    }
    bool runs_with(const Members& members, base::Time span) {
        return pass(span, [&] {
            return control.phase() == RunPhase::running && control.members() == members;
        });
    }

    void want(RunGoal goal) {
        control.want(now, goal);
        act();
    }
    void reset(std::uint32_t number) {
        control.reset(now, unit_at(number));
        act();
    }
    void kill(std::uint32_t number) {
        Unit& unit = units[number];
        if (!unit.has_process) {
            return;
        }
        const std::uint64_t session = unit.session;
        unit = {};
        control.left(now, unit_at(number), session);
        control.exited(now, unit_at(number), "SIGKILL");
        act();
    }
    void go_on(std::uint32_t number) {
        units[number].is_silent = false;
        for (const SendOrder& order : std::exchange(units[number].waiting, {})) {
            obey(order);
        }
        act();
    }
    void join(std::uint32_t number) {
        units[number].session = ++sessions_;
        control.joined(now, unit_at(number), sessions_);
        act();
    }
    void report(std::uint32_t number) {
        Unit& unit = units[number];
        const bool runs = unit.state == UnitState::running;
        unit.next_mep = runs ? built : unit.next_mep;
        unit.beats += runs && !unit.is_stuck ? 1 : 0;
        unit.steps += runs && builds() ? 1 : 0;
        reports::Heartbeat heartbeat{.number = ++unit.reports, .pulse = {.epoch = unit.epoch}};
        heartbeat.pulse.state = unit.state;
        heartbeat.pulse.beats = unit.beats;
        heartbeat.pulse.steps = unit.steps;
        heartbeat.pulse.waits = unit.waits;
        heartbeat.pulse.next_mep = unit.next_mep;
        heartbeat.pulse.suspects = {unit.suspects.begin(), unit.suspects.end()};
        control.reported(now, unit_at(number), unit.session, heartbeat);
        act();
    }

    /// The texts of the log from entry `first` on.
    [[nodiscard]] std::vector<std::string> log(std::size_t first = 0) const {
        std::vector<std::string> texts;
        for (std::size_t entry = first; entry < control.events().size(); ++entry) {
            texts.push_back(control.events()[entry].text);
        }
        return texts;
    }
    [[nodiscard]] std::size_t log_entries(const std::string& text) const {
        return static_cast<std::size_t>(std::ranges::count(log(), text));
    }

    base::Time now = base::Time::zero();
    RunControl control;
    std::vector<Unit> units;
    std::uint64_t built = 0;  ///< MEPs before this one
    std::vector<SendOrder> orders;
    std::vector<std::pair<UnitIndex, base::Time>> launched;

  private:
    [[nodiscard]] bool builds() const {
        return std::ranges::all_of(control.members(), [&](UnitIndex member) {
            const Unit& unit = units[member.value()];
            return unit.state == UnitState::running && !unit.is_silent && !unit.is_stuck &&
                   !unit.is_idle && unit.suspects.empty();
        });
    }

    void beat() {
        if (control.phase() == RunPhase::running && builds()) {
            built +=
                static_cast<std::uint64_t>(control.plan().heartbeat.ps / base::milliseconds(1).ps);
        }
        for (std::uint32_t number = 0; number < units.size(); ++number) {
            if (units[number].session != 0 && !units[number].is_silent) {
                report(number);
            }
        }
    }

    /// Executes the outputs of the run control. A report may call this function again.
    void act() {
        if (is_acting_) {
            return;
        }
        is_acting_ = true;
        for (std::vector<RunOutput> out = control.take(); !out.empty(); out = control.take()) {
            for (const RunOutput& each : out) {
                std::visit([&](const auto& output) { carry_out(output); }, each);
            }
        }
        is_acting_ = false;
    }

    void carry_out(const SendOrder& order) {
        orders.push_back(order);
        Unit& unit = units[order.unit.value()];
        if (unit.session != order.session) {
            return;
        }
        if (unit.is_silent) {
            unit.waiting.push_back(order);
        } else {
            obey(order);
        }
    }
    void carry_out(const LaunchProcess& launch) {
        launched.emplace_back(launch.unit, now);
        units[launch.unit.value()].has_process = true;
        join(launch.unit.value());
    }
    void carry_out(const KillProcess& output) { kill(output.unit.value()); }
    void carry_out(const DropConnection& drop) {
        if (units[drop.unit.value()].session == drop.session) {
            units[drop.unit.value()].session = 0;
            control.left(now, drop.unit, drop.session);
        }
    }

    void obey(const SendOrder& sent) {
        Unit& unit = units[sent.unit.value()];
        if (sent.number == 0 || sent.session != unit.session) {
            return;  // a lease, or of a connection that has ended
        }
        reports::Answer answer{.number = ++unit.reports, .order = sent.number};
        if (unit.fails == name_of(sent.order)) {
            answer.state = unit.state = UnitState::error;
            answer.failure = "no memory";
        } else {
            std::visit([&](const auto& order) { do_as(unit, order, answer); }, sent.order);
            answer.state = unit.state;
        }
        control.reported(now, sent.unit, sent.session, answer);
        if (std::holds_alternative<orders::Exit>(sent.order)) {
            kill(sent.unit.value());
        }
    }
    static void do_as(Unit& unit, const orders::Configure&, reports::Answer&) {
        unit.state = UnitState::not_ready;
    }
    static void do_as(Unit& unit, const orders::Prepare& order, reports::Answer& answer) {
        unit.state = UnitState::not_ready;
        unit.epoch = order.epoch;
        answer.address = {std::byte(order.epoch)};
    }
    static void do_as(Unit& unit, const orders::Connect&, reports::Answer& answer) {
        unit.state = UnitState::ready;
        answer.missing = {unit.unreachable.begin(), unit.unreachable.end()};
    }
    void do_as(Unit& unit, const orders::Start& order, reports::Answer&) {
        unit.state = UnitState::running;
        built = std::max(built, order.first_mep);
    }
    void do_as(Unit& unit, const orders::Halt&, reports::Answer& answer) {
        unit.next_mep = unit.state == UnitState::running ? built : unit.next_mep;
        unit.state = UnitState::not_ready;
        answer.next_mep = unit.next_mep;
    }
    static void do_as(Unit& unit, const orders::Reset&, reports::Answer&) {
        unit.state = UnitState::not_ready;
        unit.epoch = 0;
    }
    static void do_as(Unit& unit, const orders::Exit&, reports::Answer&) {
        unit.state = UnitState::not_ready;
    }
    static void do_as(Unit&, const orders::Renew&, reports::Answer&) {}

    std::uint64_t sessions_ = 0;
    std::uint64_t halves_ = 0;
    bool is_acting_ = false;
};

}  // namespace daqloom::protocol

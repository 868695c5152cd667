// Invariants of a run control under any inputs, in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "protocol/run/run_control.hpp"
#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;

constexpr std::uint32_t number_of_units = 4;

/// Random reports and commands of units, processes, the operator and the clock, true or not, and
/// checks of the run control's outputs.
class Chance {
  public:
    explicit Chance(std::uint64_t seed)
        : random_(seed, "run"), plan_(plan()), control_(plan_, {counter_names::next_mep}) {
        control_.launch(now_);
        control_.want(now_, RunGoal::running);
        look();
    }

    /// Makes one random input.
    void say() {
        const UnitIndex unit(below(number_of_units));
        Unit& here = units_[unit.value()];
        const std::uint32_t input = below(41);
        if (input == 40) {
            if (below(4) == 0) {
                die_and_return();
            }
        } else if (input < 5) {
            if (here.has_node && below(4) != 0) {
                const std::uint32_t epoch = below(4) == 0 ? below(5) : control_.epoch();
                rejoin(unit, {epoch, epoch, below(4) == 0 ? state() : UnitState::running});
            } else if (control_.is_free(unit)) {
                here.has_node = false;
                here.session = ++sessions_;
                control_.joined(now_, unit, here.session);
            }
        } else if (input < 12) {
            if (here.session != 0) {
                const std::uint64_t session = below(50) == 0 ? 777 : here.session;
                control_.reported(now_, unit, session, heartbeat(here));
            }
        } else if (input < 31) {
            if (here.session != 0) {
                control_.reported(now_, unit, here.session, answer(here));
            }
        } else if (input == 31) {
            control_.left(now_, unit, std::exchange(here.session, 0));
        } else if (input == 32) {
            if (here.has_process) {
                end(unit);
            }
        } else if (input == 33) {
            control_.want(now_, goal());
        } else if (input == 34) {
            control_.reset(now_, unit);
        } else if (input == 35) {
            count(here);
            control_.counted(unit, counters(here));
        } else {
            now_ += milliseconds(below(10) == 0 ? 3000 : 100);
            control_.tick(now_);
        }
        look();
    }

    /// The operator ends the run. Processes end when they are killed, and do nothing else.
    void finish() {
        control_.want(now_, RunGoal::ended);
        look();
        for (int tick = 0; tick < 600 && control_.phase() != RunPhase::ended; ++tick) {
            now_ += milliseconds(100);
            control_.tick(now_);
            look();
        }
        EXPECT_EQ(control_.phase(), RunPhase::ended);
    }

    [[nodiscard]] std::string log() const {
        std::string all;
        for (const RunEvent& event : control_.events()) {
            all += std::to_string(event.time.seconds()) + " " + event.text + "\n";
        }
        return all;
    }
    [[nodiscard]] std::uint64_t continued() const { return continued_; }
    [[nodiscard]] std::uint32_t epochs() const { return control_.epoch(); }
    [[nodiscard]] std::uint64_t starts() const { return starts_; }

  private:
    struct Unit {
        bool has_process = false;
        bool has_node = false;  ///< it has lost its connection with the run control that died
        std::uint64_t session = 0;
        std::uint64_t last_order = 0;  ///< number of the last one that it got
        std::int64_t built = 0;
        std::int64_t granted = 0;
        std::optional<std::int64_t> built_before = std::nullopt;  ///< its first start as a builder
    };

    RunPlan plan() {
        RunPlan plan{.units = number_of_units,
                     .order_timeout = seconds(3),
                     .launch_timeout = seconds(10),
                     .finish_timeout = seconds(static_cast<std::int64_t>(below(2))),
                     .restart = below(3) != 0,
                     .launches = below(3) != 0,
                     .leased_meps = 50,
                     .takes_turns = below(2) == 0,
                     .control_grace = seconds(below(2) == 0 ? 0 : 60)};
        if (below(2) == 0) {
            plan.slots = {.readouts = {unit_at(0), unit_at(2)},
                          .builders = {unit_at(1), unit_at(3)}};
        }
        if (below(2) == 0) {
            plan.slots = RunSlots::folded(2 + below(2));
            plan.slots.spares.assign(plan.slots.size(), UnitIndex::none());
            for (std::size_t spare = plan.slots.size(); spare < number_of_units; ++spare) {
                plan.slots.spares.emplace_back(spare);
            }
            plan.moves_apart = below(2) == 0;
        }
        return plan;
    }
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>(random_.uniform_int(n));
    }
    RunGoal goal() {
        constexpr std::array goals = {RunGoal::running, RunGoal::running, RunGoal::ready,
                                      RunGoal::idle};
        return goals[below(goals.size())];
    }
    UnitState state() { return static_cast<UnitState>(below(4)); }
    std::vector<UnitIndex> some() {
        std::vector<UnitIndex> found;
        while (below(20) == 0) {
            found.emplace_back(below(number_of_units + 2));
        }
        return found;
    }
    std::uint64_t mep() { return control_.next_mep() + below(4); }

    void count(Unit& unit) {
        const auto more = static_cast<std::int64_t>(below(5));
        unit.granted += more;
        unit.built += std::min<std::int64_t>(more, below(5));
    }
    NamedCounters counters(const Unit& unit) {
        return {{{counter_names::meps_built, unit.built},
                 {counter_names::meps_granted, unit.granted},
                 {counter_names::next_mep, static_cast<std::int64_t>(mep())}}};
    }
    reports::Heartbeat heartbeat(Unit& unit) {
        count(unit);
        reports::Heartbeat report{.number = ++reports_, .counters = counters(unit)};
        report.pulse.epoch = below(8) == 0 ? below(5) : control_.epoch();
        report.pulse.state = below(8) == 0 ? state() : UnitState::running;
        report.pulse.beats = below(8) == 0 ? 7 : reports_;
        report.pulse.steps = below(4) == 0 ? 7 : reports_;
        report.pulse.next_mep = mep();
        report.pulse.suspects = some();
        if (below(20) == 0) {
            report.ended = below(3);
        }
        return report;
    }
    reports::Answer answer(Unit& unit) {
        count(unit);
        reports::Answer report{.number = ++reports_, .counters = counters(unit)};
        report.order = below(20) == 0 ? below(1000) : unit.last_order;
        report.state = below(10) == 0 ? state() : UnitState::ready;
        report.failure = below(60) == 0 ? "no memory" : "";
        report.missing = some();
        report.next_mep = mep();
        return report;
    }

    /// The run control ends, and another one begins from the snapshot before its last outputs.
    void die_and_return() {
        const RunSnapshot snapshot = control_.snapshot();
        const RunPhase phase = control_.phase();
        const Balance balance = control_.balance();
        control_ = RunControl(plan_, {counter_names::next_mep});
        ASSERT_TRUE(control_.check(snapshot));
        control_.resume(now_, snapshot);
        EXPECT_EQ(control_.balance(), balance);
        for (Unit& unit : units_) {
            unit.has_node = unit.session != 0 || unit.has_node;
            unit.session = 0;
        }
        const std::uint32_t epoch = control_.epoch();
        for (std::uint32_t unit = below(2) * number_of_units; unit < number_of_units; ++unit) {
            if (units_[unit].has_node) {
                rejoin(unit_at(unit), {epoch, epoch, UnitState::running});
            }
        }
        continued_ += phase == RunPhase::running && control_.phase() == RunPhase::running ? 1 : 0;
    }
    void rejoin(UnitIndex unit, const reports::Rejoin& rejoin) {
        Unit& here = units_[unit.value()];
        here.has_node = false;
        if (here.session == 0 && control_.rejoined(now_, unit, sessions_ + 1, rejoin)) {
            here.session = ++sessions_;
        }
    }

    void end(UnitIndex unit) {
        Unit& here = units_[unit.value()];
        here.has_process = false;
        here.has_node = false;
        control_.left(now_, unit, std::exchange(here.session, 0));
        control_.exited(now_, unit, "SIGKILL");
    }

    /// Executes the outputs of the run control, and checks its state.
    void look() {
        for (std::vector<RunOutput> out = control_.take(); !out.empty(); out = control_.take()) {
            for (const RunOutput& each : out) {
                std::visit([&](const auto& output) { look_at(output); }, each);
            }
        }
        for (const UnitIndex member : control_.members()) {
            EXPECT_EQ(control_.unit(member).standing, Standing::available);
        }
        if (is_building(control_.phase())) {
            EXPECT_FALSE(control_.members().empty());
        }
        for (const UnitView& unit : control_.units()) {
            // At most one order of a unit is outstanding: the last one.
            if (unit.pending) {
                EXPECT_EQ(unit.pending->number, units_[unit.number.value()].last_order);
            }
        }
        EXPECT_GE(control_.next_mep(), next_mep_);
        next_mep_ = control_.next_mep();
        look_at_balance();
    }

    void look_at(const SendOrder& sent) {
        const bool is_for_all = std::holds_alternative<orders::Prepare>(sent.order) ||
                                std::holds_alternative<orders::Connect>(sent.order) ||
                                std::holds_alternative<orders::Start>(sent.order);
        EXPECT_FALSE(is_for_all && control_.phase() == RunPhase::attaching);
        Unit& unit = units_[sent.unit.value()];
        if (sent.number != 0) {
            EXPECT_GT(sent.number, order_) << "each order has a number of its own";
            order_ = unit.last_order = sent.number;
        }
        if (const auto* const prepare = std::get_if<orders::Prepare>(&sent.order)) {
            EXPECT_TRUE(std::ranges::count(prepare->members, sent.unit));
            const auto [known, is_new] = epochs_.emplace(prepare->epoch, prepare->members);
            EXPECT_EQ(known->second, prepare->members) << "an epoch has one set of members";
            EXPECT_EQ(prepare->epoch, epochs_.rbegin()->first) << "epochs never come back";
        } else if (const auto* const start = std::get_if<orders::Start>(&sent.order)) {
            look_at_start(sent.unit, *start);
        }
    }
    void look_at_start(UnitIndex unit, const orders::Start& start) {
        const auto [first, is_new] = first_meps_.emplace(control_.epoch(), start.first_mep);
        EXPECT_EQ(first->second, start.first_mep) << "an epoch is started once";
        EXPECT_GE(start.first_mep, first_mep_);
        EXPECT_GE(start.mep_end, start.first_mep);
        EXPECT_LE(start.mep_end, control_.reserved_end());
        first_mep_ = start.first_mep;
        starts_ += is_new ? 1 : 0;
        if (std::ranges::count(control_.roles().builders(), unit) > 0) {
            // No counters are read between the start of an epoch and this call.
            Unit& here = units_[unit.value()];
            here.built_before = here.built_before.value_or(finished(unit));
        }
    }
    void look_at(const LaunchProcess& launch) { units_[launch.unit.value()].has_process = true; }
    void look_at(const KillProcess& kill) {
        if (units_[kill.unit.value()].has_process) {
            end(kill.unit);
        }
    }
    void look_at(const DropConnection& drop) {
        Unit& unit = units_[drop.unit.value()];
        if (unit.session == drop.session) {
            unit.session = 0;
        }
        control_.left(now_, drop.unit, drop.session);
    }

    [[nodiscard]] std::int64_t finished(UnitIndex unit) const {
        return MepCounts::of(control_.unit(unit).tally.totals()).finished;
    }

    /// Checks that finished and unfinished MEPs of builder units add up to all MEPs of the epochs.
    void look_at_balance() {
        if (first_meps_.empty()) {
            return;
        }
        const Balance balance = control_.balance();
        std::int64_t all = balance.unfinished + balance.skipped - balance.twice;
        for (const UnitView& unit : control_.units()) {
            if (const auto before = units_[unit.number.value()].built_before) {
                all += finished(unit.number) - *before;
            }
        }
        const std::uint64_t end = std::max(control_.next_mep(), first_mep_);
        EXPECT_EQ(all, static_cast<std::int64_t>(end - first_meps_.begin()->second));
        EXPECT_GE(balance.unfinished, 0);
        EXPECT_GE(balance.skipped, 0);
        EXPECT_GE(balance.twice, 0);
    }

    base::RandomStream random_;
    RunPlan plan_;
    base::Time now_ = base::Time::zero();
    RunControl control_;
    std::vector<Unit> units_ = std::vector<Unit>(number_of_units);
    std::uint64_t sessions_ = 0;
    std::uint64_t reports_ = 0;
    std::uint64_t order_ = 0;
    std::uint64_t next_mep_ = 0;
    std::uint64_t first_mep_ = 0;
    std::uint64_t starts_ = 0;
    std::uint64_t continued_ = 0;  ///< epochs that went on under another run control
    std::map<std::uint32_t, std::vector<UnitIndex>> epochs_;
    std::map<std::uint32_t, std::uint64_t> first_meps_;
};

TEST(RunByChance, TheLawsHoldAndTheRunEndsAfterAnyInputs) {
    std::uint32_t epochs = 0;
    std::uint64_t starts = 0;
    std::uint64_t continued = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        Chance run(seed);
        for (int input = 0; input < 800; ++input) {
            run.say();
        }
        epochs += run.epochs();
        starts += run.starts();
        continued += run.continued();
        run.finish();
        ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << run.log();
    }
    // Runs must make progress: there are many epochs and starts.
    EXPECT_GT(epochs, 1500U);
    EXPECT_GT(starts, 300U);
    EXPECT_GT(continued, 5U);
}

}  // namespace

}  // namespace daqloom::protocol

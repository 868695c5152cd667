// Deaths and returns of the run control in virtual time: units, their leases and beats as they are,
// with processes, connections and a building of events made up.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "protocol/run/control_beats.hpp"
#include "protocol/run/run_control.hpp"
#include "protocol/run/unit_process.hpp"

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;
using base::Time;

constexpr std::uint32_t mortal_units = 4;
constexpr Time time_step = milliseconds(10);
constexpr Time boot = milliseconds(300);
constexpr Time retry = milliseconds(200);

/// An epoch whose members build a MEP each step, in turn, while all of them take part.
struct Building {
    std::vector<UnitIndex> members;
    std::uint64_t first = 0;
    std::uint64_t next = 0;
    std::set<UnitIndex> active = {};
};

class World final : public UnitNodes {
  public:
    struct Unit {
        bool is_alive = false;
        bool has_node = false;
        UnitProcess process = UnitProcess();
        std::optional<ControlBeats> beats = std::nullopt;
        std::uint32_t epoch = 0;
        std::vector<UnitIndex> members = {};
        std::uint64_t session = 0;
        bool is_cut_off = false;  ///< from the run control
        std::optional<Time> cut_at = std::nullopt;
        Time launched_at = Time::never();
        Time retries_at = Time::zero();
        Time reports_at = Time::zero();
        std::vector<SendOrder> inbox = {};
        // ---- counters of the node
        std::int64_t made = 0;
        std::int64_t built = 0;
        std::uint64_t next_mep = 0;
        std::optional<NamedCounters> page = std::nullopt;  ///< of a process that has ended
    };

    World(std::uint64_t seed, Time grace, bool here)
        : random_(seed, "control deaths"), is_here_(here) {
        plan_.units = mortal_units;
        plan_.order_timeout = seconds(3);
        plan_.launch_timeout = seconds(10);
        plan_.control_grace = grace;
        plan_.leased_meps = 50;
        control_ = std::make_unique<RunControl>(plan_, gauges());
        control_->want(now, RunGoal::running);
        control_->launch(now);
        act();
    }

    // ---- time
    void pass(Time span) {
        for (const Time end = now + span; now < end;) {
            now += time_step;
            tick();
        }
    }
    template <class Until>
    bool pass(Time span, Until until) {
        for (const Time end = now + span; now < end && !until();) {
            now += time_step;
            tick();
        }
        return until();
    }
    [[nodiscard]] bool is_whole() const {
        return control_ && control_->phase() == RunPhase::running &&
               control_->members().size() == mortal_units;
    }

    // ---- faults
    void kill(std::uint32_t number) {
        Unit& unit = units[number];
        if (!unit.is_alive) {
            return;
        }
        leave_building(unit, UnitIndex(number));
        const std::uint64_t session = unit.session;
        auto page = unit.has_node ? std::optional(counters(UnitIndex(number))) : unit.page;
        Unit ended;
        ended.launched_at = unit.launched_at;
        ended.made = unit.made;
        ended.page = std::move(page);
        unit = std::move(ended);
        if (control_) {
            report_death(UnitIndex(number), session);
            act();
        }
    }
    void cut_off(std::uint32_t number) {
        units[number].is_cut_off = true;
        units[number].cut_at = now;
    }
    void heal() {
        for (Unit& unit : units) {
            unit.is_cut_off = false;
            unit.cut_at.reset();
        }
    }
    /// The run control ends now, or (`outputs`) while it carries out its next outputs.
    void die(std::optional<std::size_t> outputs = std::nullopt) {
        if (outputs) {
            outputs_left_ = outputs;
            return;
        }
        end_control();
    }
    void come_back() {
        outputs_left_.reset();
        if (control_) {
            return;
        }
        control_ = std::make_unique<RunControl>(plan_, gauges());
        ASSERT_TRUE(control_->check(saved_));
        sessions_ = saved_.session;
        control_->resume(now, saved_);
        changes_ = 0;
        for (const UnitView& view : control_->units()) {
            if (view.process && !units[view.number.value()].is_alive &&
                units[view.number.value()].launched_at == Time::never()) {
                report_death(view.number, 0);
            }
        }
        act();
    }

    // ---- observers
    [[nodiscard]] bool has_control() const { return control_ != nullptr; }
    [[nodiscard]] const RunControl& control() const { return *control_; }
    void want(RunGoal goal) {
        control_->want(now, goal);
        act();
    }
    /// Whether the unit may begin MEPs now.
    [[nodiscard]] bool may_build(const Unit& unit) const {
        const UnitLease::Lease leased = unit.process.leased();
        return unit.beats && now < unit.beats->end_of(now, leased.until);
    }
    [[nodiscard]] std::int64_t finished() const {
        std::int64_t all = 0;
        for (const UnitView& unit : control_->units()) {
            all += MepCounts::of(unit.tally.totals()).finished;
        }
        return all;
    }

    std::vector<Unit> units = std::vector<Unit>(mortal_units);
    Time now = Time::zero();
    std::map<std::uint64_t, std::uint32_t> built;  ///< MEP: times built
    std::vector<std::string> log;

    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>(random_.uniform_int(n));
    }

    // ---- UnitNodes
    std::vector<std::byte> prepare(UnitIndex number, const orders::Prepare& order) override {
        Unit& unit = units[number.value()];
        leave_building(unit, number);
        unit.epoch = order.epoch;
        unit.members = order.members;
        const auto [known, is_new] = members_.emplace(order.epoch, order.members);
        EXPECT_EQ(known->second, order.members) << "an epoch has one set of members";
        return {std::byte(order.epoch)};
    }
    void start(UnitIndex number, std::uint64_t first_mep, UnitLease::Lease) override {
        Unit& unit = units[number.value()];
        auto& epoch = epochs_[unit.epoch];
        if (epoch.members.empty()) {
            epoch = {unit.members, first_mep, first_mep};
        }
        EXPECT_EQ(epoch.first, first_mep);
        epoch.active.insert(number);
        unit.next_mep = std::max(unit.next_mep, first_mep);
        unit.beats.emplace(
            ControlBeats::Config{plan_.heartbeat, plan_.fault_timeout, plan_.control_grace}, number,
            unit.members, now);
    }
    void lease(UnitIndex number, UnitLease::Lease leased) override {
        if (auto& beats = units[number.value()].beats) {
            beats->renewed(now, leased.beat);
        }
    }
    void close(UnitIndex number, std::span<const UnitIndex>) override {
        leave_building(units[number.value()], number);
    }
    std::optional<std::uint64_t> drain(UnitIndex number, Time, Time) override {
        return units[number.value()].next_mep;
    }
    std::optional<NamedCounters> shut(UnitIndex number) override {
        leave_building(units[number.value()], number);
        return counters(number);
    }
    [[nodiscard]] std::vector<UnitIndex> suspects(UnitIndex number) const override {
        std::vector<UnitIndex> found;
        for (const UnitIndex other : units[number.value()].members) {
            if (!units[other.value()].is_alive) {
                found.push_back(other);
            }
        }
        return found;
    }
    [[nodiscard]] NamedCounters counters(UnitIndex number) const override {
        const Unit& unit = units[number.value()];
        return {{{counter_names::made_s, static_cast<double>(unit.made)},
                 {counter_names::meps_built, unit.built},
                 {counter_names::meps_granted, unit.built},
                 {counter_names::next_mep, static_cast<std::int64_t>(unit.next_mep)},
                 {counter_names::beats, now.ps},
                 {counter_names::steps, static_cast<std::int64_t>(unit.next_mep)}}};
    }

  private:
    static Gauges gauges() { return {counter_names::next_mep, counter_names::made_s}; }

    void leave_building(Unit& unit, UnitIndex number) {
        if (const auto epoch = epochs_.find(unit.epoch); epoch != epochs_.end()) {
            epoch->second.active.erase(number);
        }
    }
    void report_death(UnitIndex number, std::uint64_t session) {
        if (const auto& page = units[number.value()].page; page && is_here_) {
            control_->counted(number, *page);
        }
        if (session != 0) {
            control_->left(now, number, session);
        }
        if (control_->unit(number).process) {
            control_->exited(now, number, "SIGKILL");
        }
    }
    void end_control() {
        if (control_) {
            for (const RunEvent& event : control_->events()) {
                log.push_back(std::to_string(event.time.seconds()) + " " + event.text);
            }
            log.emplace_back(std::to_string(now.seconds()) + " the run control ends");
        }
        control_.reset();
        for (Unit& unit : units) {
            unit.session = 0;
        }
    }

    void tick() {
        build();
        if (control_ && now.ps % (plan_.heartbeat / 2).ps == 0) {
            control_->tick(now);
            act();
        }
        for (std::uint32_t number = 0; number < mortal_units; ++number) {
            live(UnitIndex(number));
        }
    }

    void build() {
        if (epochs_.empty()) {
            return;
        }
        for (auto& [number, epoch] : epochs_) {
            const bool is_whole = epoch.active.size() == epoch.members.size();
            const bool may = is_whole && std::ranges::all_of(epoch.members, [&](UnitIndex unit) {
                                 const Unit& its = units[unit.value()];
                                 return may_build(its) && epoch.next < its.process.leased().mep_end;
                             });
            if (may && !epoch.members.empty()) {
                const std::uint64_t turn = (epoch.next - epoch.first) % epoch.members.size();
                ++units[epoch.members[turn].value()].built;
                ++built[epoch.next++];
                for (const UnitIndex unit : epoch.members) {
                    units[unit.value()].next_mep = epoch.next;
                }
            }
        }
    }

    void live(UnitIndex number) {
        Unit& unit = units[number.value()];
        if (unit.launched_at <= now) {
            Unit begun;
            begun.is_alive = true;
            begun.process = UnitProcess(number);
            begun.made = unit.made;
            unit = std::move(begun);
        }
        if (!unit.is_alive) {
            return;
        }
        if (unit.beats) {
            if (const UnitIndex to = unit.beats->due(now); to != UnitIndex::none()) {
                Unit& other = units[to.value()];
                if (other.is_alive && other.beats && other.epoch == unit.epoch) {
                    other.beats->on_beat(now, unit.beats->newest());
                }
            }
        }
        if (!control_ || unit.is_cut_off) {
            return;
        }
        if (unit.session == 0) {
            if (now >= unit.retries_at) {
                unit.retries_at = now + retry;
                join(number);
            }
            return;
        }
        for (const SendOrder& order : std::exchange(unit.inbox, {})) {
            if (control_ && order.session == units[number.value()].session) {
                obey(order);
            }
        }
        if (control_ && unit.session != 0 && now >= unit.reports_at) {
            send(number, {});
        }
    }

    void join(UnitIndex number) {
        Unit& unit = units[number.value()];
        unit.inbox.clear();
        unit.session = ++sessions_;
        const bool keeps = unit.has_node && plan_.control_grace > Time::zero();
        if (!keeps || !control_->rejoined(now, number, unit.session, unit.process.rejoin())) {
            if (!control_->is_free(number)) {
                unit.session = 0;
                return;
            }
            control_->joined(now, number, unit.session);
        }
        const std::uint64_t session = unit.session;
        for (const reports::Report& report : unit.process.unconfirmed()) {
            if (control_) {
                control_->reported(now, number, session, report);
            }
        }
        act();
    }

    void obey(const SendOrder& sent) {
        Unit& unit = units[sent.unit.value()];
        if (std::holds_alternative<orders::Configure>(sent.order)) {
            unit.process.shut(unit.has_node ? this : nullptr);
        }
        auto answer =
            unit.process.on_order(now, sent.number, sent.order, unit.has_node ? this : nullptr);
        if (std::holds_alternative<orders::Configure>(sent.order) ||
            std::holds_alternative<orders::Reset>(sent.order)) {
            unit.has_node = true;
            unit.made = ++nodes_;
            unit.built = 0;
            unit.next_mep = 0;
            unit.epoch = 0;
            unit.beats.reset();
        }
        while (!answer && unit.process.is_halting()) {
            answer = unit.process.on_drain(now, this);
        }
        if (answer) {
            send(sent.unit, std::move(answer));
        }
        if (std::holds_alternative<orders::Exit>(sent.order)) {
            kill(sent.unit.value());
        }
    }

    void send(UnitIndex number, UnitProcess::Answer answer) {
        Unit& unit = units[number.value()];
        unit.reports_at = now + plan_.heartbeat;
        const auto all =
            unit.process.reports(now, std::move(answer), unit.has_node ? this : nullptr);
        const std::uint64_t session = unit.session;
        for (const reports::Report& report : all) {
            if (control_) {
                control_->reported(now, number, session, report);
            }
        }
        act();
    }

    /// Stores the state, and then carries out the outputs, of which the last ones may be lost.
    void act() {
        while (control_) {
            if (outputs_left_ == 0 && below(3) == 0) {  // before the state is stored
                end_control();
                return;
            }
            if (control_->changes() != changes_) {
                changes_ = control_->changes();
                saved_ = control_->snapshot();
            }
            saved_.reserved_end = control_->reserved_end();
            const std::vector<RunOutput> outputs = control_->take();
            if (outputs.empty()) {
                return;
            }
            for (const RunOutput& output : outputs) {
                if (outputs_left_ && (*outputs_left_)-- == 0) {
                    end_control();
                    return;
                }
                std::visit([&](const auto& each) { carry_out(each); }, output);
                if (!control_) {
                    return;
                }
            }
        }
    }
    void carry_out(const SendOrder& order) {
        Unit& unit = units[order.unit.value()];
        if (unit.session == order.session) {
            unit.inbox.push_back(order);
        }
    }
    void carry_out(const LaunchProcess& launch) {
        if (!units[launch.unit.value()].is_alive) {
            units[launch.unit.value()].launched_at = now + boot;
        }
    }
    void carry_out(const KillProcess& output) { kill(output.unit.value()); }
    void carry_out(const DropConnection& drop) {
        Unit& unit = units[drop.unit.value()];
        if (unit.session == drop.session) {
            unit.session = 0;
            control_->left(now, drop.unit, drop.session);
        }
    }

    RunPlan plan_;
    base::RandomStream random_;
    bool is_here_;
    std::unique_ptr<RunControl> control_;
    RunSnapshot saved_;
    std::uint64_t changes_ = 0;
    std::uint64_t sessions_ = 0;
    std::int64_t nodes_ = 0;
    std::map<std::uint32_t, std::vector<UnitIndex>> members_;
    std::map<std::uint32_t, Building> epochs_;
    std::optional<std::size_t> outputs_left_;
};

/// Log of the run, for a failed test.
std::string text(const World& world) {
    std::string all;
    for (const std::string& line : world.log) {
        all += line + "\n";
    }
    if (world.has_control()) {
        for (const RunEvent& event : world.control().events()) {
            all += std::to_string(event.time.seconds()) + " " + event.text + "\n";
        }
    }
    return all;
}

TEST(ControlDeath, UnitsGoOnInTheSameEpochUntilAnotherRunControlContinuesIt) {
    World world(1, seconds(60), true);
    ASSERT_TRUE(world.pass(seconds(5), [&] { return world.is_whole(); })) << text(world);
    world.pass(seconds(1));
    const std::uint32_t epoch = world.control().epoch();
    world.die();
    const std::size_t before = world.built.size();
    world.pass(seconds(10));
    EXPECT_GE(world.built.size(), before + 990) << "a MEP each step";
    world.come_back();
    ASSERT_TRUE(world.pass(seconds(2), [&] { return world.is_whole(); })) << text(world);
    EXPECT_EQ(world.control().epoch(), epoch);
    EXPECT_EQ(world.control().counts().units_lost, 0U);
}

TEST(ControlDeath, UnitsStopWhenTheGraceIsOver) {
    World world(1, seconds(5), true);
    ASSERT_TRUE(world.pass(seconds(5), [&] { return world.is_whole(); }));
    world.pass(seconds(1));
    world.die();
    world.pass(seconds(5));
    const std::size_t at_five = world.built.size();
    world.pass(seconds(2));
    const std::size_t at_seven = world.built.size();
    EXPECT_GT(at_seven, at_five);
    world.pass(seconds(5));
    EXPECT_EQ(world.built.size(), at_seven) << "grace and lease: six seconds";
}

TEST(ControlDeath, AUnitThatAloneIsCutOffStopsAsWithoutGrace) {
    for (std::uint32_t unit = 0; unit < mortal_units; ++unit) {
        World world(unit, seconds(60), true);
        ASSERT_TRUE(world.pass(seconds(5), [&] { return world.is_whole(); }));
        world.pass(seconds(1) + milliseconds(70) * unit);
        world.cut_off(unit);
        world.pass(milliseconds(790));
        EXPECT_TRUE(world.may_build(world.units[unit])) << "the last report is not a second old";
        world.pass(milliseconds(220));
        EXPECT_FALSE(world.may_build(world.units[unit]));
    }
}

/// Random faults of units, and deaths of the run control at random instants, in every phase.
TEST(ControlDeath, NothingIsBuiltTwiceAndTheBooksAreComplete) {
    std::map<RunPhase, int> phases;
    int continued = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const bool here = seed % 3 != 0;
        World world(seed, seconds(seed % 5 == 0 ? 2 : 60), here);
        for (int turn = 0; turn < 6; ++turn) {
            world.pass(milliseconds(world.below(3000)));
            if (world.has_control() && world.below(3) == 0) {
                world.want(world.below(2) == 0 ? RunGoal::ready : RunGoal::running);
            }
            if (world.below(3) == 0) {
                world.kill(world.below(mortal_units));
            }
            if (world.below(4) == 0) {
                world.cut_off(world.below(mortal_units));
            }
            world.pass(milliseconds(world.below(400)));
            if (world.has_control()) {
                ++phases[world.control().phase()];
            }
            if (world.below(2) == 0) {
                world.die();
            } else {
                world.die(world.below(6));
            }
            world.pass(milliseconds(world.below(4000)));
            if (world.below(2) == 0) {
                world.kill(world.below(mortal_units));
            }
            world.pass(milliseconds(world.below(1000)));
            world.heal();
            const bool was_dead = !world.has_control();
            world.come_back();
            ASSERT_TRUE(world.pass(seconds(8),
                                   [&] { return world.control().phase() != RunPhase::attaching; }))
                << "seed " << seed << "\n"
                << text(world);
            continued += was_dead && world.control().phase() == RunPhase::running ? 1 : 0;
        }
        world.heal();
        world.want(RunGoal::running);
        ASSERT_TRUE(world.pass(seconds(200), [&] { return world.is_whole(); }))
            << "seed " << seed << "\n"
            << text(world);
        world.want(RunGoal::ready);
        ASSERT_TRUE(
            world.pass(seconds(20), [&] { return world.control().phase() == RunPhase::ready; }))
            << "seed " << seed << "\n"
            << text(world);
        const Balance balance = world.control().balance();
        EXPECT_EQ(balance.twice, 0);
        EXPECT_EQ(world.finished() + balance.unfinished + balance.skipped,
                  static_cast<std::int64_t>(world.control().next_mep()));
        const auto twice =
            std::ranges::count_if(world.built, [](const auto& mep) { return mep.second > 1; });
        EXPECT_EQ(twice, 0);
        if (here) {  // the pages of all units are read
            EXPECT_EQ(world.finished(), static_cast<std::int64_t>(world.built.size()));
        }
        ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << text(world);
    }
    for (const RunPhase phase : {RunPhase::waiting, RunPhase::preparing, RunPhase::connecting,
                                 RunPhase::ready, RunPhase::running}) {
        EXPECT_GT(phases[phase], 0) << name_of(phase);
    }
    EXPECT_GT(continued, 50);
}

}  // namespace

}  // namespace daqloom::protocol

// Transitions of a run from phase to phase.
#include "protocol/run/regrouping.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;

/// Names of the orders to a unit, except orders without an answer.
std::vector<std::string> orders_to(const UnitsByHand& run, std::uint32_t unit) {
    std::vector<std::string> names;
    for (const SendOrder& order : run.orders) {
        if (order.unit == unit_at(unit) && order.number != 0) {
            names.emplace_back(name_of(order.order));
        }
    }
    return names;
}

/// The last order of a kind.
template <class Kind>
Kind last(const UnitsByHand& run) {
    Kind found;
    for (const SendOrder& order : run.orders) {
        if (const auto* const kind = std::get_if<Kind>(&order.order)) {
            found = *kind;
        }
    }
    return found;
}

UnitsByHand just_running(const RunPlan& plan) {
    UnitsByHand run(plan);
    run.want(RunGoal::running);
    EXPECT_TRUE(run.pass_to(RunPhase::running)) << ::testing::PrintToString(run.log());
    return run;
}

TEST(Regrouping, NothingIsPreparedBeforeTheOperatorWantsIt) {
    UnitsByHand run({.units = 2});
    EXPECT_FALSE(run.pass_to(RunPhase::preparing, seconds(100)));
    EXPECT_EQ(run.control.phase(), RunPhase::waiting);
    EXPECT_EQ(orders_to(run, 0), std::vector<std::string>{"configure"});
}

TEST(Regrouping, AUnitReceivesTheOrderOfEachStep) {
    UnitsByHand run({.units = 2});
    run.want(RunGoal::ready);
    EXPECT_EQ(run.control.phase(), RunPhase::ready);
    run.want(RunGoal::running);
    EXPECT_EQ(run.control.phase(), RunPhase::running);
    run.want(RunGoal::ready);
    EXPECT_EQ(run.control.phase(), RunPhase::ready);
    run.want(RunGoal::ended);
    EXPECT_EQ(run.control.phase(), RunPhase::ended);
    const std::vector<std::string> expected{"configure", "prepare", "connect", "start",
                                            "halt",      "prepare", "connect", "exit"};
    EXPECT_EQ(orders_to(run, 0), expected);
    EXPECT_EQ(orders_to(run, 1), expected);
    EXPECT_EQ(run.control.epoch(), 2U) << "a stop is the only reason for a new epoch";
    EXPECT_EQ(run.log(),
              (std::vector<std::string>{
                  "unit 0 is available", "unit 1 is available", "the operator configures the run",
                  "preparing: epoch 1, 2 units", "connecting", "ready",
                  "the operator starts the run", "starting", "running: from MEP 0",
                  "the operator stops the run", "halting", "preparing: epoch 2, 2 units",
                  "connecting", "ready", "the operator ends the run", "ending", "ended"}));
    EXPECT_EQ(run.control.counts().regroupings, 0U);
}

TEST(Regrouping, MembersConnectToTheReportedAddresses) {
    const UnitsByHand run = just_running({.units = 3, .order_timeout = seconds(10)});
    const auto order = last<orders::Connect>(run);
    ASSERT_EQ(order.addresses.size(), 3U);
    for (std::uint32_t unit = 0; unit < 3; ++unit) {
        EXPECT_EQ(order.addresses[unit].unit, unit_at(unit));
        EXPECT_EQ(order.addresses[unit].address, std::vector(1, std::byte{1}));
    }
    EXPECT_EQ(order.timeout, seconds(5)) << "half of what the run control waits for";
}

/// The run builds one MEP per millisecond, for a second.
TEST(Regrouping, ARunGoesOnWhereItStopped) {
    UnitsByHand run = just_running({.units = 2});
    run.pass(seconds(1));
    run.want(RunGoal::ready);
    EXPECT_EQ(run.control.first_mep(), 1000U);
    run.want(RunGoal::running);
    EXPECT_EQ(last<orders::Start>(run).first_mep, 1000U);
}

TEST(Regrouping, AReturnedUnitTakesPartInTheNextEpoch) {
    UnitsByHand run = just_running({.units = 3, .restart = false});
    run.kill(1);
    EXPECT_EQ(run.control.members(), members_of({0, 2}));
    EXPECT_EQ(last<orders::Halt>(run).lost, std::vector{unit_at(1)});
    run.reset(1);
    run.pass(milliseconds(200));
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    EXPECT_EQ(run.log_entries("halting: unit 1 can take part"), 1U);
    EXPECT_EQ(run.control.epoch(), 3U);
    EXPECT_EQ(run.control.counts().regroupings, 2U);
}

TEST(Regrouping, UnitsThatNeverJoinAreNamed) {
    UnitsByHand run({.units = 3, .launch_timeout = seconds(20), .launches = false});
    run.join(1);
    run.want(RunGoal::running);
    EXPECT_FALSE(run.pass_to(RunPhase::error, seconds(19)));
    EXPECT_TRUE(run.pass_to(RunPhase::error, seconds(2)));
    EXPECT_EQ(run.control.failure(), "2 of 3 units did not join within 20 s: 0, 2");
}

TEST(Regrouping, TooFewUnitsAreAnErrorThatTheOperatorCanMend) {
    UnitsByHand run = just_running({.units = 3, .restart = false, .fewest_members = 2});
    run.kill(0);
    run.kill(1);
    EXPECT_EQ(run.control.phase(), RunPhase::error);
    EXPECT_EQ(run.control.failure(), "too few units are left, 1 of 3 (its process ended: SIGKILL)")
        << "a reason of two units is named once";
    run.reset(0);
    run.reset(1);
    run.pass(seconds(1));
    EXPECT_EQ(run.control.phase(), RunPhase::error) << "it is the operator's to go on";
    run.want(RunGoal::running);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(1)));
    EXPECT_EQ(run.control.failure(), "");
}

TEST(Regrouping, ARunWhoseUnitsComeBackWaitsForThem) {
    UnitsByHand run = just_running({.units = 2, .fewest_members = 2});
    run.kill(0);
    EXPECT_EQ(run.control.phase(), RunPhase::waiting);
    EXPECT_EQ(run.log_entries("too few units are left, 1: waiting for others"), 1U);
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(5)));
}

TEST(Regrouping, AUnitUnreachableTwiceIsLeftOut) {
    UnitsByHand run({.units = 3, .restart = false});
    run.units[0].unreachable = run.units[2].unreachable = {unit_at(1)};
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    EXPECT_EQ(run.control.members(), members_of({0, 2}));
    EXPECT_EQ(run.control.units()[1].reason, "others cannot connect to it");
    EXPECT_EQ(run.control.epoch(), 3U);
}

/// Two of three other members report a unit that did not drain; a single one would not suffice.
TEST(Regrouping, AUnitThatDidNotDrainIsLost) {
    UnitsByHand run = just_running({.units = 4, .restart = false});
    for (std::uint32_t unit = 0; unit < 4; ++unit) {
        run.units[unit].is_silent = true;
    }
    run.want(RunGoal::ready);
    ASSERT_EQ(run.control.phase(), RunPhase::halting);
    for (std::uint32_t unit = 0; unit < 4; ++unit) {
        const SendOrder& halt = run.units[unit].waiting.back();
        reports::Answer answer{.number = 100, .order = halt.number};
        if (unit == 0 || unit == 1) {
            answer.missing = {unit_at(3)};
        } else if (unit == 3) {
            answer.missing = {unit_at(0)};
        }
        run.control.reported(run.now, halt.unit, halt.session, answer);
    }
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    EXPECT_EQ(run.log_entries("unit 3 is lost: it did not drain"), 1U);
    EXPECT_EQ(run.control.counts().units_lost, 1U);
}

TEST(Regrouping, AUnitThatDoesNotAnswerAtTheEndIsKilled) {
    UnitsByHand run = just_running({.units = 2, .fault_timeout = seconds(1)});
    run.units[1].is_silent = true;
    run.want(RunGoal::ended);
    EXPECT_EQ(run.control.phase(), RunPhase::halting);
    EXPECT_TRUE(run.pass_to(RunPhase::ended, seconds(10)));
    EXPECT_FALSE(run.units[1].has_process);
}

/// The unit may take its 5 s as long as it reports, but at most a timeout without reports.
TEST(Regrouping, AUnitThatStillReportsMayFinishItsFiles) {
    UnitsByHand run({.units = 1, .finish_timeout = seconds(5)});
    run.units[0].fails = "exit";  // it goes on with its files
    const base::Time begin = run.now;
    run.control.want(run.now, RunGoal::ended);
    run.control.take();  // the order to exit gets lost
    EXPECT_TRUE(run.pass_to(RunPhase::ended, seconds(20)));
    EXPECT_GE(run.now - begin, seconds(5));
    EXPECT_LE(run.now - begin, seconds(8));
}

}  // namespace

}  // namespace daqloom::protocol

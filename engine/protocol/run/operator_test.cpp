// Changes by the operator: excluded units and sources, and new configurations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::seconds;

UnitsByHand running_with(const RunPlan& plan) {
    UnitsByHand run(plan);
    run.want(RunGoal::running);
    EXPECT_TRUE(run.pass_to(RunPhase::running)) << ::testing::PrintToString(run.log());
    run.pass(seconds(1));
    return run;
}

/// The last orders of a kind that were sent, one of each unit.
template <class Kind>
std::vector<Kind> last_orders(const UnitsByHand& run, std::size_t count) {
    std::vector<Kind> found;
    for (const SendOrder& sent : run.orders) {
        if (const auto* const order = std::get_if<Kind>(&sent.order)) {
            found.push_back(*order);
        }
    }
    return {found.end() - static_cast<std::ptrdiff_t>(std::min(count, found.size())), found.end()};
}

TEST(Operator, AnExcludedUnitLeavesInOrderAndReturnsOnlyWhenIncluded) {
    UnitsByHand run = running_with({.units = 3});
    EXPECT_TRUE(run.control.exclude(run.now, members_of({1}), false));
    EXPECT_TRUE(run.runs_with(members_of({0, 2}), seconds(2)));
    EXPECT_EQ(run.control.counts().units_lost, 0U);
    EXPECT_EQ(run.control.unit(unit_at(1)).standing, Standing::available);
    EXPECT_EQ(run.log_entries("the operator excludes unit 1"), 1U);
    EXPECT_EQ(run.log_entries("halting: the operator excludes unit 1"), 1U);
    // The unit itself halted with the others, so nothing is unfinished or skipped.
    run.pass(seconds(30));
    EXPECT_EQ(run.control.members(), members_of({0, 2}));
    run.control.include(run.now, members_of({1}), false);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(2)));
    EXPECT_EQ(run.log_entries("the operator includes unit 1"), 1U);
    EXPECT_EQ(run.control.counts().units_lost, 0U);
}

TEST(Operator, AnotherScheduleBeginsWithTheNextEpochAndSurvivesTheRunControl) {
    UnitsByHand run = running_with({.units = 3});
    EXPECT_TRUE(last_orders<orders::Prepare>(run, 1)[0].readouts.empty());
    const std::vector readouts{UnitIndex(0), UnitIndex(1), UnitIndex(2), UnitIndex::none()};
    const std::vector builders{UnitIndex(2), UnitIndex::none(), UnitIndex(0), UnitIndex(1)};
    const RunSlots slots = RunSlots::folded(3).rearranged(readouts, builders).value();
    const std::uint32_t epoch = run.control.epoch();
    for (int twice = 0; twice < 2; ++twice) {  // the second time nothing changes
        run.control.reschedule(run.now, slots, "there is another schedule");
        EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(2)));
        EXPECT_EQ(run.control.epoch(), epoch + 1);
    }
    EXPECT_EQ(run.log_entries("halting: there is another schedule"), 1U);
    for (const orders::Prepare& order : last_orders<orders::Prepare>(run, 3)) {
        EXPECT_EQ(order.readouts, readouts);
        EXPECT_EQ(order.builders, builders);
    }
    const RunSnapshot state = run.control.snapshot();
    EXPECT_EQ(state.readout_slots, readouts);
    RunControl next(run.control.plan(), {});
    EXPECT_TRUE(next.check(state));
    next.resume(run.now, state);
    EXPECT_EQ(next.snapshot().builder_slots, builders);
    RunSnapshot other = state;
    other.builder_slots = {UnitIndex(2), UnitIndex(2), UnitIndex(0), UnitIndex(1)};
    EXPECT_FALSE(next.check(other));
}

TEST(Operator, AnExcludedUnitThatDiesIsStartedAgainOnlyWhenIncluded) {
    UnitsByHand run = running_with({.units = 3});
    EXPECT_TRUE(run.control.exclude(run.now, members_of({2}), false));
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(2)));
    const std::size_t before = run.launched.size();
    run.kill(2);
    run.pass(seconds(120));
    EXPECT_EQ(run.launched.size(), before);
    run.control.include(run.now, members_of({2}), false);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(3)));
    EXPECT_EQ(run.launched.size(), before + 1);
}

TEST(Operator, UnitsExcludedBeforeTheRunAreNotAwaited) {
    UnitsByHand run({.units = 3});
    run.units[1].is_silent = true;
    EXPECT_TRUE(run.control.exclude(run.now, members_of({1}), false));
    run.want(RunGoal::running);
    EXPECT_TRUE(run.runs_with(members_of({0, 2}), seconds(2)));
}

TEST(Operator, NotAllUnitsOrSourcesCanBeExcluded) {
    UnitsByHand run = running_with({.units = 2});
    for (const bool sources : {false, true}) {
        const auto refused = run.control.exclude(run.now, members_of({0, 1}), sources);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().message, "the other units could build no events");
    }
    run.pass(seconds(5));
    EXPECT_EQ(run.control.epoch(), 1U);
    EXPECT_TRUE(run.control.exclude(run.now, members_of({0}), false));
    EXPECT_FALSE(run.control.exclude(run.now, members_of({1}), false));
    EXPECT_FALSE(run.control.exclude(run.now, members_of({1}), true));
}

TEST(Operator, AUnitWithoutItsSourceStillBuilds) {
    UnitsByHand run = running_with({.units = 3});
    EXPECT_TRUE(run.control.exclude(run.now, members_of({1}), true));
    EXPECT_TRUE(run.pass(seconds(2), [&] {
        return run.control.epoch() == 2U && run.control.phase() == RunPhase::running;
    }));
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    EXPECT_EQ(run.control.roles().readouts(), members_of({0, 2}));
    EXPECT_EQ(run.control.roles().builders(), units_at({0, 1, 2}));
    const RoleHolders silent{unit_at(1), no_unit, unit_at(1)};
    for (const orders::Prepare& order : last_orders<orders::Prepare>(run, 3)) {
        EXPECT_EQ(order.moved, std::vector{silent});
    }
    run.control.include(run.now, members_of({1}), true);
    EXPECT_TRUE(run.pass(seconds(2), [&] {
        return run.control.epoch() == 3U && run.control.phase() == RunPhase::running;
    }));
    EXPECT_EQ(run.control.roles().readouts(), members_of({0, 1, 2}));
    EXPECT_TRUE(run.control.roles().moved().empty());
}

TEST(Operator, ASpareTakesNoExcludedSource) {
    RunPlan plan{.units = 3};
    plan.slots.readouts = units_at({0, 1});
    plan.slots.builders = units_at({0, 1});
    plan.slots.spares = units_at({2});
    UnitsByHand run = running_with({.units = 3, .slots = plan.slots});
    EXPECT_TRUE(run.control.exclude(run.now, members_of({1}), true));
    run.pass(seconds(3));
    EXPECT_EQ(run.control.roles().readouts(), members_of({0}));
    EXPECT_EQ(run.control.members(), members_of({0, 1}));
}

TEST(Operator, ANewConfigurationReachesAllUnitsWithoutNewProcesses) {
    UnitsByHand run = running_with({.units = 3});
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    run.pass(seconds(1));
    const std::uint64_t built = run.control.next_mep();
    EXPECT_GT(built, 500U);
    const std::size_t processes = run.launched.size();
    run.orders.clear();
    EXPECT_TRUE(run.control.reconfigure(run.now, {.units = 3}, 10 * built));
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    EXPECT_EQ(last_orders<orders::Configure>(run, 99).size(), 3U);
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    run.want(RunGoal::running);
    EXPECT_TRUE(run.pass_to(RunPhase::running));
    EXPECT_EQ(run.control.first_mep(), 10 * built);
    EXPECT_EQ(run.launched.size(), processes);
    EXPECT_EQ(run.control.counts().units_lost, 0U);
    EXPECT_EQ(run.log_entries("the operator configures the run anew"), 1U);
}

TEST(Operator, NumbersLeftOutBetweenConfigurationsAreNotSkippedMeps) {
    UnitsByHand run = running_with({.units = 3});
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    // The units by hand count nothing, so every number of the epoch is on the books as skipped.
    const std::int64_t before = run.control.balance().skipped;
    EXPECT_TRUE(run.control.reconfigure(run.now, {.units = 3}, run.control.next_mep() + 100'000));
    run.want(RunGoal::running);
    EXPECT_TRUE(run.pass_to(RunPhase::running));
    EXPECT_LT(run.control.balance().skipped - before, 1000);
}

TEST(Operator, ANewConfigurationIsRefusedWhileDataMayBeInFlight) {
    UnitsByHand run = running_with({.units = 3});
    const auto refused = run.control.reconfigure(run.now, {.units = 3}, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "the run of 3 units is running; its units can be configured anew while it is "
              "stopped, and their number stays");
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    EXPECT_FALSE(run.control.reconfigure(run.now, {.units = 4}, 0));
}

TEST(Operator, AConfigurationThatFailsIsAnErrorUntilTheNext) {
    UnitsByHand run = running_with({.units = 3});
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    run.units[1].fails = "configure";
    EXPECT_TRUE(run.control.reconfigure(run.now, {.units = 3, .restart = false}, 0));
    EXPECT_TRUE(run.pass_to(RunPhase::error));
    EXPECT_EQ(run.control.failure(), "unit 1 cannot be configured: no memory");
    run.units[1].fails.clear();
    EXPECT_TRUE(run.control.reconfigure(run.now, {.units = 3, .restart = false}, 0));
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    EXPECT_EQ(run.control.failure(), "");
}

TEST(Operator, ALostUnitGetsTheNewConfigurationToo) {
    UnitsByHand run = running_with({.units = 3, .restart = false});
    run.units[2].is_silent = true;
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(3)));
    run.want(RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    run.go_on(2);
    EXPECT_TRUE(run.control.reconfigure(run.now, {.units = 3}, 0));
    EXPECT_TRUE(run.pass_to(RunPhase::ready));
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
}

}  // namespace

}  // namespace daqloom::protocol

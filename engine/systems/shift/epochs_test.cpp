// Unit loss in linear shifting: the other units regroup and go on. faults/conservation_test.cpp
// checks that every MEP has one fate.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/failure_test.hpp"
#include "systems/shift/run_control_test.hpp"

namespace daqloom::systems {
namespace {

TEST(Regrouping, WithoutFaultsNothingChanges) {
    ShiftSystemConfig config = controlled();
    const auto system = play(config, base::milliseconds(2));
    config.run.reset();
    const auto usual = play(config, base::milliseconds(2));
    EXPECT_EQ(system->report().meps_built, usual->report().meps_built);
    EXPECT_EQ(system->report().steps, usual->report().steps);
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4}));
    EXPECT_EQ(system->run_control()->accounts().regroupings, 0);
}

/// After the loss of one of four units, all phases, also those of the dummy, take as long as
/// before. A phase delivers three MEPs instead of four. All lack the MFPs of the lost unit and
/// count as incomplete, as in a live run.
TEST(Regrouping, TheOthersGoOnWithoutAKilledUnit) {
    ShiftSystemConfig config = controlled();
    config.duration = base::milliseconds(4);
    const auto usual = play(config, base::milliseconds(3));
    const std::uint64_t usual_before = usual->report().meps_built;
    usual->run(base::milliseconds(4));
    config.node_changes = {kill(2, base::milliseconds(1))};
    const auto system = play(config, base::milliseconds(3));
    const ShiftReport before = system->report();
    system->run(base::milliseconds(4));
    EXPECT_TRUE(system->check_conservation());
    const ShiftReport after = system->report();

    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
    // The run control notices the end of the process at once.
    EXPECT_EQ(lost_by(*system), (std::vector<Lost>{{base::milliseconds(1), 2}}));
    const auto with = static_cast<double>(usual->report().meps_built - usual_before);
    const auto without = static_cast<double>(after.meps_incomplete - before.meps_incomplete);
    EXPECT_NEAR(without / with, 0.75, 0.02);
    EXPECT_EQ(after.meps_built, before.meps_built);
    const auto all = system->run_control()->accounts();
    EXPECT_EQ(all.units_lost, 1);
    EXPECT_EQ(all.regroupings, 1);
    EXPECT_EQ(all.incomplete, static_cast<std::int64_t>(after.meps_incomplete));
}

/// Draining takes as long as the granted MFPs: two rounds, and some messages.
TEST(Regrouping, TakesAsLongAsTheGrantedMfps) {
    ShiftSystemConfig config = controlled();
    config.node_changes = {kill(1, base::milliseconds(1))};
    const auto system = play(config, base::milliseconds(2));
    const auto& members = system->run_control()->members();
    ASSERT_EQ(members.size(), 3);
    EXPECT_EQ(members[1].at, base::milliseconds(1));
    EXPECT_LE((members[2].at - members[1].at).ps, (transfer(config) * (2 * 4)).ps);
}

/// A killed unit returns after the run control's pause (a fault timeout) and the launch of its
/// process; then all units take part.
TEST(Regrouping, AKilledUnitComesBack) {
    ShiftSystemConfig config = controlled();
    config.run->restart = true;
    config.launch = microseconds(200);
    config.node_changes = {kill(2, base::milliseconds(1))};
    const auto system = play(config, base::milliseconds(3));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3, 0, 4}));
    const auto& members = system->run_control()->members();
    const Time back = members[3].at;
    EXPECT_GE(back, base::milliseconds(1) + kTimeout + config.launch);
    EXPECT_LE(back, base::milliseconds(1) + kTimeout + config.launch + kHeartbeat / 2);
    EXPECT_EQ(system->run_control()->accounts().units_lost, 1);
}

/// The last report came up to a heartbeat before the stop, and the run control checks twice a
/// heartbeat. After the stop the unit returns by itself, with a reset.
TEST(Regrouping, AStoppedUnitIsLostAfterTheFaultTimeoutAndReturns) {
    for (std::int64_t us = 1000; us < 1100; us += 17) {
        ShiftSystemConfig config = controlled();
        config.run->restart = true;
        config.node_changes = {stop(3, microseconds(us), microseconds(us + 2000))};
        const auto system = play(config, base::milliseconds(5));
        const std::vector<Lost> lost = lost_by(*system);
        ASSERT_EQ(lost.size(), 1);
        EXPECT_EQ(lost[0].host, 3);
        const Time known = lost[0].at - microseconds(us);
        EXPECT_GT(known, kTimeout - kHeartbeat);
        EXPECT_LE(known, kTimeout + kHeartbeat / 2);
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3, 0, 4}));
    }
    ShiftSystemConfig config = controlled();
    config.node_changes = {stop(3, microseconds(1000), microseconds(1300))};
    EXPECT_EQ(members_of(*play(config, base::milliseconds(3))), std::vector<std::uint32_t>{4})
        << "a short stop is no loss";
}

/// The unit's cable is down: its adapter drops packets from it, and the switch drops packets to it.
/// A queue pair gives up after eight times its timeout. Its unit reports that, and half a fault
/// timeout later all units halt; the unreachable unit does not answer and is lost.
TEST(Regrouping, AUnitIsLostThatTheOthersCannotReach) {
    ShiftSystemConfig config = controlled();
    constexpr Time kRetry = microseconds(10);
    rdma_of(config).retry_timeout = kRetry;
    for (const std::uint32_t link : {4U, 5U}) {
        fabric_of(config).changes.push_back({.at = base::milliseconds(1), .link = link});
    }
    const auto system = play(config, base::milliseconds(4));
    ASSERT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
    const Time known = system->run_control()->members()[1].at - base::milliseconds(1);
    EXPECT_GT(known, kRetry * 8 + kTimeout / 2);
    EXPECT_LT(known, kRetry * 8 + kTimeout / 2 + kHeartbeat * 2);
    const std::vector<Lost> lost = lost_by(*system);
    ASSERT_EQ(lost.size(), 1);
    EXPECT_EQ(lost[0].host, 2);
    EXPECT_LE(lost[0].at, base::milliseconds(1) + known + kTimeout);
    EXPECT_EQ(system->run_control()->control().unit(UnitIndex(2)).reason, "it did not drain");
}

/// A dummy's phase takes as long as any other; in one phase of each schedule, each unit writes
/// within its node.
TEST(Regrouping, AnotherScheduleBeginsWithAnotherEpoch) {
    ShiftSystemConfig config = controlled();
    const auto at = [](std::initializer_list<int> hosts) {
        std::vector<NodeIndex> slots;
        for (const int host : hosts) {
            slots.push_back(host < 0 ? NodeIndex::none() : NodeIndex(host));
        }
        return slots;
    };
    const std::vector<NodeIndex> usual = at({0, 1, -1, 2, 3, -1});
    config.slots = usual;
    config.barrier = ShiftBarrier::external;  // it takes no time
    config.duration = base::milliseconds(6);
    config.schedule_changes = {
        {base::milliseconds(2), at({3, 1, 0, 2}), at({3, 1, 0, 2})},
        {base::milliseconds(4), usual, usual},
    };
    const auto system = play(config, base::milliseconds(6));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 4, 0, 4}));
    EXPECT_EQ(system->run_control()->accounts().units_lost, 0U);
    EXPECT_EQ(system->run_control()->accounts().regroupings, 2U);

    const auto built = [&](std::int64_t from, std::int64_t to) {
        const auto run = play(config, base::milliseconds(from));
        const std::uint64_t before = run->report().meps_built;
        run->run(base::milliseconds(to));
        EXPECT_TRUE(run->check_conservation());
        return static_cast<double>(run->report().meps_built - before);
    };
    EXPECT_NEAR(built(3, 4) / built(1, 2), 5.0 / 3, 0.03);
    EXPECT_NEAR(built(5, 6) / built(1, 2), 1, 0.02);
}

TEST(Regrouping, AnotherScheduleHasTheSameUnits) {
    ShiftSystemConfig config = controlled();
    config.schedule_changes = {{base::milliseconds(1), config.slots, config.slots}};
    config.schedule_changes[0].slots.pop_back();
    EXPECT_TRUE(base::fails_with("with other units", ShiftSystem::make(config)));
    config.schedule_changes[0].slots.emplace_back(99);
    EXPECT_TRUE(base::fails_with("with other units", ShiftSystem::make(config))) << "no such host";
    config.run.reset();
    EXPECT_FALSE(ShiftSystem::make(config)) << "nobody would apply it";
    config.schedule_changes.clear();
    config.node_changes = {kill(2, base::milliseconds(1))};
    EXPECT_TRUE(base::fails_with("regroup", ShiftSystem::make(config))) << "nor find out the kill";
}

TEST(Regrouping, IsTheSameWithTheSameSeed) {
    ShiftSystemConfig config = controlled();
    config.run->restart = true;
    config.phase_jitter = exponential(microseconds(1));
    config.node_changes = {kill(2, microseconds(777)),
                           stop(1, microseconds(1500), microseconds(2500))};
    const auto one = play(config, base::milliseconds(4));
    const auto other = play(config, base::milliseconds(4));
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    config.seed = 2;
    EXPECT_NE(one->fingerprint(), play(config, base::milliseconds(4))->fingerprint());
}

}  // namespace
}  // namespace daqloom::systems

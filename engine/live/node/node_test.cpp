// Whole nodes: runs without faults, and with units that are lost and return.
#include "live/node/node.hpp"

#include <gtest/gtest.h>

#include <string>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

INSTANTIATE_TEST_SUITE_P(Transports, NodesOver, testing::ValuesIn(transports()),
                         [](const auto& name) {
                             return name.param == "shm" ? std::string("Shm") : std::string("Tcp");
                         });

TEST_P(NodesOver, FoldedUnitsBuildEveryEventOnce) { expect_right(folded(3, GetParam()), first(3)); }

TEST_P(NodesOver, UnfoldedUnitsBuildEveryEventOnce) {
    NodeConfig config = folded(2, GetParam());
    config.slots.builders = Units{2, 3};
    expect_right(config, {2, 3});
}

TEST_P(NodesOver, SeveralStreamsOfAUnitBelongToTheSameEvents) {
    NodeConfig config = folded(2, GetParam());
    config.streams = 3;
    config.fragment_bytes = {1, 50, 200, 10, 400, 80};
    expect_right(config, first(2));
}

TEST_P(NodesOver, EveryBarrierAndNoneBuildsTheSame) {
    for (const auto barrier :
         {protocol::ShiftBarrier::none, protocol::ShiftBarrier::centralised,
          protocol::ShiftBarrier::tournament, protocol::ShiftBarrier::dissemination,
          protocol::ShiftBarrier::neighbour}) {
        NodeConfig config = folded(3, GetParam());
        config.barrier = barrier;
        config.meps_per_phase = 3;
        SCOPED_TRACE(static_cast<int>(barrier));
        expect_right(config, first(3));
    }
}

TEST_P(NodesOver, BuilderUnitsCanSetThePace) {
    for (const std::uint32_t writers : {1U, 2U}) {
        NodeConfig config = folded(4, GetParam());
        config.pace = protocol::Pace::builder;
        config.writers = writers;
        config.barrier =
            writers == 1 ? protocol::ShiftBarrier::none : protocol::ShiftBarrier::tournament;
        config.barrier_groups = {0, 0, 1, 1};
        config.barrier_slack = writers - 1;
        config.meps_per_phase = 2;
        config.phase_jitter = {.kind = base::DelayDistribution::Kind::exponential,
                               .mean = base::microseconds(100)};
        SCOPED_TRACE(writers);
        expect_right(config, first(4));
    }
}

TEST_P(NodesOver, PhasesCanFollowTheClock) {
    NodeConfig config = folded(2, GetParam());
    config.change = protocol::PhaseChange::by_time;
    config.window = base::milliseconds(5);
    config.grace = base::milliseconds(1);
    config.meps_per_phase = 4;
    expect_right(config, first(2));
}

TEST_P(NodesOver, EventsCanBeBuiltOneByOne) {
    NodeConfig config = folded(2, GetParam());
    config.packing = 1;
    config.fragment_bytes = {10, 10};
    config.meps_per_phase = 16;
    expect_right(config, first(2));
}

// ---- units come and go --------------------------------------------------------------------------

TEST_P(NodesOver, ALostUnitDelaysNoWriteOfOthers) {
    NodeConfig config = folded(3, GetParam());
    config.pace = protocol::Pace::builder;
    config.barrier = protocol::ShiftBarrier::tournament;
    config.barrier_groups = {0, 0, 1};
    NodesUnderTest run(config);
    run.play({0, 1, 2}, {2});
    run.play({0, 1});
    run.play({0, 1, 2});
}

TEST_P(NodesOver, ALostUnitIsLeftOutAndComesBack) {
    NodesUnderTest run(folded(3, GetParam()));
    run.play({0, 1, 2}, {2});
    const std::uint64_t incomplete = run.count(UnitIndex(0), "meps_incomplete");
    run.play({0, 1});
    EXPECT_GT(run.count(UnitIndex(0), "meps_incomplete"), incomplete)
        << "unit 2's fragments are missing";
    const std::uint64_t built = run.count(UnitIndex(0), "meps_built");
    run.play({0, 1, 2});
    EXPECT_GT(run.count(UnitIndex(0), "meps_built"), built);
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

TEST_P(NodesOver, TwoUnitsAreLostAtOnceOrOneAfterTheOther) {
    NodesUnderTest run(folded(4, GetParam()));
    run.play(first(4), {1, 2});
    run.begin(first(4));
    EXPECT_TRUE(run.builds(first(4)));
    // The first list, with unit 1 lost, is not complete, because unit 2 is also lost.
    for (const UnitIndex unit : Units{0, 3}) {
        static_cast<void>(halt(run[unit], Units{1}, base::milliseconds(1)));
    }
    run.halt({0, 3}, {2});
    run.play({0, 3});
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

TEST_P(NodesOver, MepsConsumedAfterAnAbandonedEpochAreCounted) {
    NodesUnderTest run(folded(2, GetParam()));
    for (int epoch = 0; epoch < 10; ++epoch) {
        run.next_mep += 100'000;  // beyond all that the epoch before may have begun
        run.begin(first(2));
        EXPECT_TRUE(run.builds(first(2)));
    }
    run.halt(first(2));
    run.expect_all_checked();
    EXPECT_TRUE(until([&] { return run.sum("meps_processed") == run.sum("meps_delivered"); }));
    EXPECT_EQ(run.sum("incomplete_meps_processed"), run.sum("meps_incomplete"));
}

TEST_P(NodesOver, ManyEpochsWithChangingMembersBuildNothingTwice) {
    NodesUnderTest run(folded(3, GetParam()));
    for (std::uint32_t i = 0; i < 12; ++i) {
        run.play(first(3), {i % 3}, 3);
        run.play(without(first(3), {i % 3}), {}, 3);
    }
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

}  // namespace
}  // namespace daqloom::live

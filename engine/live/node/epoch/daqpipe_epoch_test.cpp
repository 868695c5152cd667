#include <gtest/gtest.h>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

NodeConfig daqpipe(std::uint32_t units, bool is_push) {
    NodeConfig config = folded(units);
    config.protocol = Protocol::daqpipe;
    config.is_push = is_push;
    config.credits = 3;
    config.parallel_sends = 2;
    return config;
}

struct DaqpipeVariant {
    const char* name;
    std::uint32_t units;
    bool is_push;
    base::Time slot;
};

class DaqpipeEpochs : public testing::TestWithParam<DaqpipeVariant> {};

TEST_P(DaqpipeEpochs, BuildEveryEventWholeAndEndWithNoneUnderWay) {
    const DaqpipeVariant& variant = GetParam();
    NodeConfig config = daqpipe(variant.units, variant.is_push);
    config.slot = variant.slot;
    NodesUnderTest nodes(config);
    const Units members = first(variant.units);
    nodes.begin(members);
    ASSERT_TRUE(nodes.counts(members, "meps_built", 50));
    nodes.halt(members);
    nodes.expect_all_whole();
    nodes.expect_nothing_refused();
    const std::uint64_t built = nodes.sum("meps_built");
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("mfps_received"), built * variant.units);
    EXPECT_EQ(nodes.sum("mfps_written"), built * variant.units);
    EXPECT_EQ(built, nodes.next_mep) << "none is left out";
}

INSTANTIATE_TEST_SUITE_P(
    , DaqpipeEpochs,
    testing::Values(DaqpipeVariant{"pull", 4, false, base::Time::zero()},
                    DaqpipeVariant{"push", 4, true, base::Time::zero()},
                    DaqpipeVariant{"alone", 1, false, base::Time::zero()},
                    DaqpipeVariant{"timed_pull", 2, false, base::microseconds(100)},
                    DaqpipeVariant{"timed_push", 3, true, base::microseconds(100)}),
    [](const auto& tested) { return tested.param.name; });

class DaqpipeEpochsWithLosses : public testing::TestWithParam<bool> {};

TEST_P(DaqpipeEpochsWithLosses, GoOnWithoutALostNodeEvenThatOfTheEventManager) {
    NodesUnderTest nodes(daqpipe(3, GetParam()));
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(nodes.counts({0, 1, 2}, "meps_delivered", 30));
    nodes.kill(UnitIndex(0));
    nodes.halt({1, 2}, {0});
    const std::uint64_t next = nodes.next_mep;
    nodes.begin({1, 2});
    ASSERT_TRUE(nodes.counts({1, 2}, "meps_delivered", 30)) << "unit 1 manages events";
    nodes.halt({1, 2});
    EXPECT_GT(nodes.next_mep, next);
    EXPECT_GE(nodes.sum("meps_incomplete"), 2 * 30) << "none has what the lost unit held";
    nodes.expect_all_whole();
}

TEST_P(DaqpipeEpochsWithLosses, DropWhatIsIncompleteIfSoConfigured) {
    NodeConfig config = daqpipe(3, GetParam());
    config.delivers_incomplete = false;
    NodesUnderTest nodes(config);
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(nodes.counts({0, 1, 2}, "meps_delivered", 30));
    nodes.kill(UnitIndex(2));
    nodes.halt({0, 1}, {2});
    nodes.expect_all_whole();
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("meps_built"), nodes.sum("meps_delivered"));
}

TEST_P(DaqpipeEpochsWithLosses, TakeALostNodeBack) {
    NodesUnderTest nodes(daqpipe(2, GetParam()));
    nodes.play({0, 1}, {1});
    nodes.play({0});
    nodes.play({0, 1});
    nodes.expect_all_whole();
}

INSTANTIATE_TEST_SUITE_P(, DaqpipeEpochsWithLosses, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "push" : "pull"; });

TEST(DaqpipeEpoch, ASourceThatStopsKeepsNobodyFromEnding) {
    NodeConfig config = daqpipe(2, false);
    config.source = SourceKind::user;  // and no such process attaches
    NodesUnderTest nodes(config);
    nodes.begin({0, 1});
    nodes.halt({0, 1});
    EXPECT_EQ(nodes.sum("meps_delivered"), 0);
}

TEST(DaqpipeEpoch, WhatASourceDoesNotDeliverIsEmptyWhenItEnds) {
    NodesUnderTest nodes(daqpipe(2, true), {0, 1}, has_user_source_at_unit_1);
    nodes.begin({0, 1});
    // Both builder units get an event for each credit, and the fragments of unit 0: no more.
    ASSERT_TRUE(until([&] { return nodes.sum("mfps_received") == 2 * 3; }));
    nodes.halt({0, 1});
    EXPECT_EQ(nodes.next_mep, 2 * 3);
    EXPECT_EQ(nodes.count(UnitIndex(1), "mfps_absent"), 2 * 3);
    EXPECT_EQ(nodes.sum("meps_delivered"), 2 * 3);
    nodes.expect_all_checked();
}

TEST(DaqpipeNode, SaysWhatDoesNotFitBeforeItBegins) {
    NodeConfig config = daqpipe(2, false);
    config.credits = 1'025;
    EXPECT_EQ(Node::make(config).error().message,
              "1025 credits; the 32 bits that come with a write can tell 1024 apart, give 1 to "
              "that");
    config.credits = 2;
    config.streams = 2;
    EXPECT_EQ(Node::make(config).error().message,
              "2 streams; in DAQPIPE a readout unit has one, of MFPs with all it holds");
}

}  // namespace
}  // namespace daqloom::live

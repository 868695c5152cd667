#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "live/node_fixture.hpp"

namespace daqloom::live {
namespace {

using Units = std::vector<UnitIndex>;

NodeConfig daqpipe(const std::string& run, bool is_push) {
    NodeConfig config;
    config.run = run;
    config.protocol = Protocol::daqpipe;
    config.is_push = is_push;
    config.credits = 3;
    config.parallel_sends = 2;
    config.packing = 20;
    config.fragment_bytes = {200};
    config.stream_buffer = 1 << 20;
    config.output_buffer = 1 << 20;
    config.waiting = Waiting::blocking;
    return config;
}

Units all(std::uint32_t units) {
    Units members(units);
    std::iota(members.begin(), members.end(), UnitIndex{0});
    return members;
}

/// What all of them built is right.
void expect_right(NodesUnderTest& nodes, const Units& members) {
    for (const char* wrong : {"meps_wrong", "meps_repeated", "mfps_malformed", "mfps_absent"}) {
        EXPECT_EQ(nodes.sum(members, wrong), 0) << wrong;
    }
    EXPECT_EQ(nodes.sum(members, "meps_checked"), nodes.sum(members, "meps_delivered"));
}
/// And nobody heard what nobody says; a unit that is lost and does not know it goes on speaking.
void expect_nothing_refused(NodesUnderTest& nodes, const Units& members) {
    EXPECT_EQ(nodes.sum(members, "refused_messages"), 0);
    EXPECT_EQ(nodes.sum(members, "refused_writes"), 0);
}

struct Variant {
    const char* name;
    std::uint32_t units;
    bool is_push;
    base::Time slot;
};

class DaqpipeEpochs : public testing::TestWithParam<Variant> {};

TEST_P(DaqpipeEpochs, BuildEveryEventWholeAndEndWithNoneUnderWay) {
    const Variant& variant = GetParam();
    NodeConfig config = daqpipe(std::string("whole-") + variant.name, variant.is_push);
    config.slot = variant.slot;
    NodesUnderTest nodes(variant.units, config);
    const Units members = all(variant.units);
    nodes.begin(1, members, 0);
    ASSERT_TRUE(nodes.until_each(members, "meps_built", 50));
    const std::uint64_t next = nodes.halt(members, {});
    expect_right(nodes, members);
    expect_nothing_refused(nodes, members);
    const std::uint64_t built = nodes.sum(members, "meps_built");
    EXPECT_EQ(nodes.sum(members, "meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum(members, "mfps_received"), built * variant.units);
    EXPECT_EQ(nodes.sum(members, "mfps_written"), built * variant.units);
    EXPECT_EQ(built, next) << "none is left out";
}

INSTANTIATE_TEST_SUITE_P(, DaqpipeEpochs,
                         testing::Values(Variant{"pull", 4, false, base::Time::zero()},
                                         Variant{"push", 4, true, base::Time::zero()},
                                         Variant{"alone", 1, false, base::Time::zero()},
                                         Variant{"timed_pull", 2, false, base::microseconds(100)},
                                         Variant{"timed_push", 3, true, base::microseconds(100)}),
                         [](const auto& tested) { return tested.param.name; });

class DaqpipeEpochsWithLosses : public testing::TestWithParam<bool> {};

TEST_P(DaqpipeEpochsWithLosses, GoOnWithoutALostNodeEvenThatOfTheEventManager) {
    NodesUnderTest nodes(3, daqpipe(GetParam() ? "lost-push" : "lost-pull", GetParam()));
    nodes.begin(1, {0, 1, 2}, 0);
    ASSERT_TRUE(nodes.until_each({0, 1, 2}, "meps_delivered", 30));
    nodes.kill(0);
    const std::uint64_t next = nodes.halt({1, 2}, {0});
    const std::uint64_t delivered = nodes.sum({1, 2}, "meps_delivered");
    nodes.begin(2, {1, 2}, next);
    ASSERT_TRUE(nodes.until_each({1, 2}, "meps_delivered", delivered + 30))
        << "unit 1 manages events";
    const std::uint64_t last = nodes.halt({1, 2}, {});
    EXPECT_GT(last, next);
    EXPECT_GE(nodes.sum({1, 2}, "meps_incomplete"), 2 * 30) << "none has what the lost unit held";
    expect_right(nodes, {1, 2});
}

TEST_P(DaqpipeEpochsWithLosses, DropWhatIsIncompleteIfTheyAreToldSo) {
    NodeConfig config = daqpipe(GetParam() ? "drop-push" : "drop-pull", GetParam());
    config.delivers_incomplete = false;
    NodesUnderTest nodes(3, config);
    nodes.begin(1, {0, 1, 2}, 0);
    ASSERT_TRUE(nodes.until_each({0, 1, 2}, "meps_delivered", 30));
    nodes.kill(2);
    nodes.halt({0, 1}, {2});
    expect_right(nodes, {0, 1});
    EXPECT_EQ(nodes.sum({0, 1}, "meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum({0, 1}, "meps_built"), nodes.sum({0, 1}, "meps_delivered"));
}

TEST_P(DaqpipeEpochsWithLosses, TakeALostNodeBack) {
    NodesUnderTest nodes(2, daqpipe(GetParam() ? "back-push" : "back-pull", GetParam()));
    nodes.begin(1, {0, 1}, 0);
    ASSERT_TRUE(nodes.until_each({0, 1}, "meps_delivered", 10));
    std::uint64_t next = nodes.halt({0}, {1});
    nodes.begin(2, {0}, next);
    ASSERT_TRUE(nodes.until_each({0}, "meps_delivered", nodes.count(0, "meps_delivered") + 10));
    next = nodes.halt({0}, {});
    nodes.begin(3, {0, 1}, next);
    ASSERT_TRUE(nodes.until_each({0, 1}, "meps_delivered", nodes.count(0, "meps_delivered") + 10));
    nodes.halt({0, 1}, {});
    expect_right(nodes, {0, 1});
}

INSTANTIATE_TEST_SUITE_P(, DaqpipeEpochsWithLosses, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "push" : "pull"; });

TEST(DaqpipeEpoch, ASourceThatStopsKeepsNobodyFromEnding) {
    NodeConfig config = daqpipe("silent", false);
    config.source = SourceKind::user;  // and no such process attaches
    NodesUnderTest nodes(2, config);
    nodes.begin(1, {0, 1}, 0);
    nodes.halt({0, 1}, {});
    EXPECT_EQ(nodes.sum({0, 1}, "meps_delivered"), 0);
}

TEST(DaqpipeEpoch, WhatASourceDoesNotDeliverIsEmptyWhenItEnds) {
    NodesUnderTest nodes(2, daqpipe("behind", true), [](NodeConfig& config) {
        config.source = config.self == 1 ? SourceKind::user : SourceKind::generator;
    });
    nodes.begin(1, {0, 1}, 0);
    // Both builder units get an event for each credit, and the fragments of unit 0.
    ASSERT_TRUE(nodes.until_each({0, 1}, "mfps_received", 3));
    EXPECT_EQ(nodes.halt({0, 1}, {}), 2 * 3);
    EXPECT_EQ(nodes.count(1, "mfps_absent"), 2 * 3);
    EXPECT_EQ(nodes.sum({0, 1}, "meps_delivered"), 2 * 3);
    EXPECT_EQ(nodes.sum({0, 1}, "meps_wrong"), 0);
    EXPECT_EQ(nodes.sum({0, 1}, "meps_checked"), 2 * 3);
}

TEST(DaqpipeNode, SaysWhatDoesNotFitBeforeItBegins) {
    NodeConfig config = daqpipe("unfit", false);
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

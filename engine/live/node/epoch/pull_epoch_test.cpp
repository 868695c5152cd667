#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

using base::DelayDistribution;

/// Readout units 0 …, then builder units; events of 1 kB, more than anybody can build.
NodeConfig pull(std::uint32_t readouts, std::uint32_t builders,
                const std::string& transport = "shm") {
    const std::uint32_t units = readouts + builders;
    NodeConfig config = folded(units, transport);
    config.protocol = Protocol::pull;
    std::fill_n(config.slots.builders.begin(), readouts, UnitIndex::none());
    std::fill(config.slots.readouts.begin() + readouts, config.slots.readouts.end(),
              UnitIndex::none());
    config.fragment_bytes.resize(readouts);
    config.arrivals.rate_hz = 1e5;
    config.event_size.mean = 1'000;
    config.concurrent_events = 4;
    return config;
}

struct PullVariant {
    const char* name;
    std::uint32_t readouts;
    std::uint32_t builders;
    void (*adapt)(NodeConfig&);
};

class PullEpochs : public testing::TestWithParam<PullVariant> {};

TEST_P(PullEpochs, BuildEveryEventWholeAndEndWithNoneUnderWay) {
    const PullVariant& variant = GetParam();
    NodeConfig config = pull(variant.readouts, variant.builders);
    variant.adapt(config);
    NodesUnderTest nodes(config);
    const Units members = first(variant.readouts + variant.builders);
    const Units builders = without(members, first(variant.readouts));
    nodes.begin(members);
    ASSERT_TRUE(nodes.counts(builders, "meps_built", 30));
    nodes.halt(members);
    nodes.expect_all_whole();
    nodes.expect_nothing_refused();
    const std::uint64_t built = nodes.sum("meps_built");
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("mfps_received"), built * variant.readouts);
    EXPECT_EQ(nodes.sum("mfps_written"), built * variant.readouts);
    EXPECT_EQ(built, nodes.next_mep) << "none is left out";
}

const auto kAsItIs = [](NodeConfig&) {};

INSTANTIATE_TEST_SUITE_P(
    , PullEpochs,
    testing::Values(
        PullVariant{"three_to_one", 3, 1, kAsItIs}, PullVariant{"two_to_three", 2, 3, kAsItIs},
        PullVariant{"one_to_one", 1, 1,
                    [](NodeConfig& config) {
                        config.concurrent_events = 1;
                        config.outstanding_fragments = 1;
                    }},
        PullVariant{"few_outstanding", 4, 2,
                    [](NodeConfig& config) {
                        config.outstanding_fragments = 3;
                        config.assignment = protocol::Assignment::least_busy;
                    }},
        PullVariant{"sizes_and_shares", 3, 2,
                    [](NodeConfig& config) {
                        config.event_size = {.kind = protocol::EventSizeConfig::Kind::gamma,
                                             .mean = 2'000,
                                             .spread_bytes = 1'000};
                        config.share = {1, 2, 3};
                        config.assignment = protocol::Assignment::random;
                    }},
        PullVariant{"in_pieces", 2, 1,
                    [](NodeConfig& config) {
                        config.event_size.mean = 300'000;  // three pieces of 50 kB from each
                        config.stream_buffer = config.output_buffer = base::Bytes{4} << 20;
                    }},
        PullVariant{"slow_readout", 2, 1,
                    [](NodeConfig& config) {
                        config.response = {.kind = DelayDistribution::Kind::exponential,
                                           .mean = base::microseconds(100)};
                    }},
        PullVariant{"slow_processing", 2, 2,
                    [](NodeConfig& config) {
                        config.processing = {{.mean = base::microseconds(50)},
                                             {.kind = DelayDistribution::Kind::exponential,
                                              .mean = base::microseconds(50)}};
                    }}),
    [](const auto& tested) { return tested.param.name; });

TEST(PullEpoch, RecordsArrivalsAtTheEventManagerIfSoConfigured) {
    NodeConfig config = pull(2, 1);
    config.trace_arrivals = 1'000'000;
    NodesUnderTest nodes(config);
    const Units members = first(3);
    const base::Time before = now();
    nodes.begin(members);
    ASSERT_TRUE(nodes.counts({UnitIndex(2)}, "meps_built", 30));
    nodes.halt(members);
    const base::Time after = now();
    const ArrivalRecord::Arrivals arrivals = nodes[UnitIndex()].take_arrivals();
    EXPECT_EQ(arrivals.times.size(), nodes.next_mep + nodes.count(UnitIndex(), "events_waiting"));
    EXPECT_EQ(arrivals.beyond, 0U);
    EXPECT_TRUE(before <= arrivals.begin && arrivals.begin < arrivals.times.front());
    EXPECT_LE(arrivals.times.back(), after);
    EXPECT_TRUE(std::ranges::is_sorted(arrivals.times));
    auto planned =
        protocol::Arrivals::make(config.arrivals, base::RandomStream(config.seed, "arrivals"));
    ASSERT_TRUE(planned);
    for (const base::Time at : arrivals.times) {
        EXPECT_GE(at - arrivals.begin, planned->next());
    }
    EXPECT_TRUE(nodes[UnitIndex(1)].take_arrivals().times.empty()) << "no event manager";
}

/// 3 readout units and 2 builder units, of which one is lost and may come back.
class PullEpochsOver : public testing::TestWithParam<std::string> {
  protected:
    static const Units kAll;
    static const Units kBuilders;

    static void build(NodesUnderTest& nodes, const Units& members, const Units& lost = {}) {
        nodes.begin(members);
        ASSERT_TRUE(nodes.counts(without(kBuilders, lost), "meps_delivered", 30));
    }
};
const Units PullEpochsOver::kAll = {0, 1, 2, 3, 4};
const Units PullEpochsOver::kBuilders = {3, 4};

TEST_P(PullEpochsOver, BuildEveryByte) {
    NodesUnderTest nodes(pull(3, 2, GetParam()));
    build(nodes, kAll);
    nodes.halt(kAll);
    nodes.expect_all_whole();
    EXPECT_EQ(nodes.sum("meps_built"), nodes.next_mep) << "none is left out";
    nodes.expect_nothing_refused();
}

TEST_P(PullEpochsOver, GoOnWithoutALostReadoutUnitEvenThatOfTheEventManager) {
    for (const UnitIndex lost : Units{0, 2}) {
        NodesUnderTest nodes(pull(3, 2, GetParam()));
        build(nodes, kAll);
        nodes.kill(lost);
        nodes.halt(without(kAll, {lost}), {lost});
        const std::uint64_t next = nodes.next_mep;
        EXPECT_LE(nodes.accounted(), next);
        build(nodes, without(kAll, {lost}));
        nodes.halt(without(kAll, {lost}));
        EXPECT_GT(nodes.next_mep, next);
        EXPECT_GE(nodes.sum("meps_incomplete"), 2 * 30) << "none has what the lost unit held";
        nodes.expect_all_checked();
    }
}

TEST_P(PullEpochsOver, GoOnWithoutALostBuilderUnit) {
    NodesUnderTest nodes(pull(3, 2, GetParam()));
    build(nodes, kAll);
    nodes.kill(UnitIndex(3));
    nodes.halt({0, 1, 2, 4}, {3});
    const std::uint64_t next = nodes.next_mep;
    build(nodes, {0, 1, 2, 4}, {3});
    nodes.halt({0, 1, 2, 4});
    const std::uint64_t later = nodes.next_mep - next;
    EXPECT_GE(nodes.sum("meps_built"), later);
    nodes.expect_all_checked();
}

INSTANTIATE_TEST_SUITE_P(, PullEpochsOver, testing::ValuesIn(transports()),
                         [](const auto& tested) { return tested.param == "shm" ? "shm" : "tcp"; });

TEST(PullEpoch, DropsWhatIsIncompleteIfSoConfigured) {
    NodeConfig config = pull(3, 2);
    config.delivers_incomplete = false;
    NodesUnderTest nodes(config);
    nodes.begin(first(5));
    ASSERT_TRUE(nodes.counts({3, 4}, "meps_delivered", 30));
    nodes.kill(UnitIndex(2));
    nodes.halt({0, 1, 3, 4}, {2});
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("meps_built"), nodes.sum("meps_delivered"));
    nodes.expect_all_whole();
}

TEST(PullEpoch, TakesALostUnitBack) {
    NodesUnderTest nodes(pull(2, 2));
    nodes.play({0, 1, 2, 3}, {1});
    nodes.play({0, 2, 3});
    nodes.begin({0, 1, 2, 3});
    ASSERT_TRUE(nodes.counts({2, 3}, "meps_built", 10)) << "whole again";
    nodes.halt({0, 1, 2, 3});
    nodes.expect_all_checked();
}

/// A readout unit delivers nothing, so that its builder unit takes no more events. Those that wait
/// in the event manager when the unit is declared lost come again, all at once, in the next epoch.
TEST(PullEpoch, EventsThatCameBeforeALossWasKnownAreBuiltAfterwards) {
    NodeConfig config = pull(2, 1);
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::deterministic;
    config.arrivals.rate_hz = 1e3;
    config.trace_arrivals = 10'000;
    NodesUnderTest nodes(config, {0, 1, 2}, has_user_source_at_unit_1);
    constexpr std::uint64_t waiting = 100;
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(until([&] { return nodes.count(UnitIndex(0), "events_waiting") >= waiting; }));
    nodes.halt({0, 2}, {1});
    const std::uint64_t assigned = nodes.next_mep;
    nodes[UnitIndex(0)].take_arrivals();
    nodes.begin({0, 2});
    ASSERT_TRUE(nodes.counts({2}, "meps_delivered", waiting / 2));
    nodes.halt({0, 2});
    std::map<base::Time, std::uint64_t> at;
    for (const base::Time time : nodes[UnitIndex(0)].take_arrivals().times) {
        ++at[time];
    }
    EXPECT_GE(at.begin()->second + assigned, waiting) << "and those that were assigned before";
}

TEST(PullEpoch, WhatASourceDoesNotDeliverIsMissingWhenItEnds) {
    NodesUnderTest nodes(pull(2, 1), {0, 1, 2}, has_user_source_at_unit_1);
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(until([&] { return nodes.sum("mfps_received") == 4; }))
        << "as many as are collected";
    nodes.halt({0, 1, 2});
    EXPECT_EQ(nodes.next_mep, 4);
    EXPECT_EQ(nodes.sum("meps_incomplete"), 4);
    nodes.expect_all_checked();
}

TEST(PullEpoch, CountsEventsThatNobodyHasRoomFor) {
    NodeConfig config = pull(2, 1);
    config.processing = {{.mean = base::seconds(100)}};
    NodesUnderTest nodes(config);
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(until([&] { return nodes.count(UnitIndex(), "events_waiting") > 10; }));
    ASSERT_TRUE(until([&] { return nodes.sum("meps_built") == 4; })) << "held for its processing";
    nodes.halt({0, 1, 2});
    EXPECT_EQ(nodes.next_mep, 4);
    EXPECT_GT(nodes.count(UnitIndex(), "events_waiting"), 10);
}

TEST(PullNode, SaysWhatDoesNotFitBeforeItBegins) {
    NodeConfig config = pull(2, 1);
    config.output_buffer = 4'000;
    EXPECT_EQ(Node::make(config).error().message,
              "4 concurrent events of up to 1280 bytes take 5120 bytes of the output buffer, which "
              "has 4000; give fewer concurrent events or a larger output buffer");
    config = pull(2, 1);
    config.share = {1};
    EXPECT_EQ(Node::make(config).error().message, "1 shares of 2 readout units; give one for each");
    config = pull(2, 1);
    config.event_size.mean = base::Bytes{1} << 40;
    EXPECT_EQ(Node::make(config).error().message,
              "a fragment of 549755813888 bytes; give at most 4294836225: smaller events, or more "
              "readout units");
}

}  // namespace
}  // namespace daqloom::live

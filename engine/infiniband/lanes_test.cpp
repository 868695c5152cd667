// Known answers of virtual lane arbitration: the order in which packets of backlogged lanes leave.

#include <string>

#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/network_play_test.hpp"

namespace daqloom::infiniband {
namespace {

using reference::Injection;

/// Packets that a lane has to send, all of them from the beginning on.
struct LaneBacklog {
    std::uint8_t lane;
    std::uint32_t packets;
    base::Bytes bytes = kFull;
};

/// The lanes of the packets from host 0 to host 1, a digit each, in the order of their arrival.
/// Credits for all of them are there, so that nothing but the tables of host 0 decides.
std::string order_of(const LaneArbitration& tables, const std::vector<LaneBacklog>& backlogs) {
    FabricConfig config = star(2);
    config.lanes = 4;
    config.arbitration = tables;
    config.buffer_blocks = 100'000;
    std::vector<Injection> traffic;
    for (const LaneBacklog& each : backlogs) {
        traffic = joined(traffic, packets(0, 1, each.packets, each.bytes, each.lane));
    }
    return lanes_as_they_arrive(NetworkPlay(config, traffic).deliveries, traffic);
}

std::string times(std::size_t count, const std::string& turn) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        all += turn;
    }
    return all;
}

/// Tables without high priority.
LaneArbitration only_low(const std::vector<std::pair<std::uint8_t, std::uint8_t>>& low) {
    LaneArbitration tables;
    tables.low = lane_weights(low);
    return tables;
}

TEST(Lanes, AWeightIsUsedUpToTheEndOfThePacketThatOvershootsIt) {
    // A turn of weight w has ⌈w / 65⌉ packets of 65 blocks, and one at least.
    for (const int weight : {1, 64, 65, 66, 130, 131, 255}) {
        const auto packets = static_cast<std::size_t>(weight + 64) / 65;
        const std::string order = order_of(
            only_low({{0, static_cast<std::uint8_t>(weight)}, {1, 65}}), {{0, 200}, {1, 200}});
        const std::string turn = times(packets, "0") + "1";
        EXPECT_EQ(order.substr(0, 40 * turn.size()), times(40, turn)) << weight;
    }
}

TEST(Lanes, TakeTurnsOfAsManyBlocksAsTheirWeights) {
    // 128 blocks: two packets of 65 (which overshoots by two), or 128 of one.
    EXPECT_EQ(order_of(only_low({{0, 128}, {1, 128}}), {{0, 100, kFull}, {1, 6400, 64}}),
              times(50, times(2, "0") + times(128, "1")));
    // Specification, volume 1, 7.6.9: the weight is loaded anew. 66 of 65-block packets: two a
    // turn, not 66 / 65 on the average.
    EXPECT_EQ(order_of(only_low({{0, 66}, {1, 65}}), {{0, 200}, {1, 100}}), times(100, "001"));
    // A lane may have several entries.
    EXPECT_EQ(
        order_of(only_low({{0, 65}, {1, 65}, {0, 65}, {2, 130}}), {{0, 80}, {1, 40}, {2, 80}}),
        times(40, "01022"));
    // What a lane without packets leaves is the other's.
    EXPECT_EQ(order_of(only_low({{0, 65}, {1, 195}}), {{0, 20}, {1, 6}}),
              "01110111" + times(18, "0"));
}

TEST(Lanes, HighPriorityLetsLowHaveAPacketWhenItsLimitIsReached) {
    LaneArbitration tables;
    tables.high = lane_weights({{1, 255}});
    tables.low = lane_weights({{0, 255}});
    // The limit is asked before each packet: it holds back the one after limit · 4096 B or more, of
    // 4122 B each. Low priority has one packet then, whatever its weight.
    for (const int limit : {0, 1, 2, 10, 100, 200, 254}) {
        tables.high_limit = static_cast<std::uint8_t>(limit);
        const auto high =
            static_cast<std::size_t>(std::max<base::Bytes>(1, (limit * 4096 + kFull - 1) / kFull));
        const std::string order = order_of(tables, {{0, 400}, {1, 400}});
        const std::string turn = times(high, "1") + "0";
        const std::size_t turns = 400 / high;
        EXPECT_EQ(order.substr(0, turns * turn.size()), times(turns, turn)) << limit;
    }
}

TEST(Lanes, WithoutLimitHighPriorityGoesFirst) {
    LaneArbitration tables;
    tables.high = lane_weights({{1, 1}, {2, 1}});
    tables.low = lane_weights({{0, 255}});
    tables.high_limit = 255;
    EXPECT_EQ(order_of(tables, {{0, 50}, {1, 50}, {2, 30}}),
              times(30, "12") + times(20, "1") + times(50, "0"));
}

}  // namespace
}  // namespace daqloom::infiniband

// Random small fabrics: the engine is compared with the flit-level simulator, to the picosecond.

#include "infiniband/network_play_test.hpp"
#include "infiniband/random_fabric_test.hpp"

namespace daqloom::infiniband {
namespace {

class AgainstFlits : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(AgainstFlits, EveryPacketArrivesAtTheSameInstant) {
    std::uint64_t stalled = 0;
    struct {
        base::Time credits;
        base::Time crossbar;
    } waits;
    std::uint64_t discards = 0;
    std::uint64_t lanes_waited = 0;
    for (std::uint64_t seed = 100 * GetParam(); seed < 100 * GetParam() + 100; ++seed) {
        SCOPED_TRACE(seed);
        const auto drawn = reference::random_fabric(seed);
        const reference::Outcome expected = reference::run(drawn.config, drawn.traffic);
        const NetworkPlay play(drawn.config, drawn.traffic);
        play.network->finish(expected.end);  // of a stalled one, outputs wait on

        for (std::size_t i = 0; i < drawn.traffic.size(); ++i) {
            ASSERT_EQ(play.deliveries[i].delivered, expected.packets[i].delivered)
                << "packet " << i;
            ASSERT_EQ(play.deliveries[i].at.ps, expected.packets[i].at.ps) << "packet " << i;
        }
        ASSERT_EQ(play.network->discarded(), expected.discarded);
        ASSERT_EQ(play.network->in_network() > 0, expected.stalled);
        stalled += expected.stalled ? 1U : 0U;
        for (const auto& [port, counters] : expected.outputs) {
            SCOPED_TRACE(::testing::Message() << "node " << port.first << " port " << port.second);
            const End end = end_at(port.first, port.second);
            const OutputCounters& ours = play.network->counters(end);
            ASSERT_EQ(ours.packets, counters.packets);
            ASSERT_EQ(ours.bytes, counters.bytes);
            ASSERT_EQ(ours.wait_credits.ps, counters.wait_credits.ps);
            ASSERT_EQ(ours.wait_crossbar.ps, counters.wait_crossbar.ps);
            ASSERT_EQ(ours.discards, counters.discards);
            for (const auto& [lane, bytes] : counters.lane_bytes) {
                ASSERT_EQ(play.network->counters(end, VirtualLane(lane)).bytes, bytes);
            }
            for (const auto& [lane, wait] : counters.lane_wait) {
                ASSERT_EQ(play.network->counters(end, VirtualLane(lane)).wait.ps, wait.ps);
                lanes_waited += lane > 0 ? 1U : 0U;
            }
            discards += counters.discards;
            waits.credits += counters.wait_credits;
            waits.crossbar += counters.wait_crossbar;
        }
    }
    // Every kind of outcome has occurred.
    EXPECT_GT(stalled, 0U);
    EXPECT_GT(waits.credits, base::Time::zero());
    EXPECT_GT(waits.crossbar, base::Time::zero());
    EXPECT_GT(discards, 0U);
    EXPECT_GT(lanes_waited, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstFlits, ::testing::Range<std::uint64_t>(0, 10));

}  // namespace
}  // namespace daqloom::infiniband

#include <gtest/gtest.h>

#include <string>

#include "live/node_fixture.hpp"

namespace daqloom::live {
namespace {

NodeConfig shift(const std::string& run) {
    NodeConfig config;
    config.run = run;
    config.streams = 2;
    config.packing = 20;
    config.fragment_bytes = {200};
    config.stream_buffer = 1 << 20;
    config.output_buffer = 1 << 22;
    config.waiting = Waiting::blocking;
    return config;
}

TEST(ShiftEpochs, BuildEveryEventRightAndDrainWhileSourcesGoOn) {
    NodesUnderTest nodes(3, shift("shift-whole"));
    nodes.begin(1, {0, 1, 2}, 0);
    ASSERT_TRUE(nodes.until_each({0, 1, 2}, "meps_built", 30));
    nodes.halt({0, 1, 2}, {});
    EXPECT_EQ(nodes.sum({0, 1, 2}, "meps_wrong"), 0);
    EXPECT_EQ(nodes.sum({0, 1, 2}, "meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum({0, 1, 2}, "meps_checked"), nodes.sum({0, 1, 2}, "meps_delivered"));
}

TEST(ShiftEpochs, GoOnWithoutALostNode) {
    NodesUnderTest nodes(3, shift("shift-lost"));
    nodes.begin(1, {0, 1, 2}, 0);
    ASSERT_TRUE(nodes.until_each({0, 1, 2}, "meps_built", 30));
    nodes.kill(1);
    const std::uint64_t next = nodes.halt({0, 2}, {1});
    const std::uint64_t delivered = nodes.sum({0, 2}, "meps_delivered");
    nodes.begin(2, {0, 2}, next);
    ASSERT_TRUE(nodes.until_each({0, 2}, "meps_delivered", delivered + 30));
    EXPECT_GT(nodes.halt({0, 2}, {}), next);
    EXPECT_EQ(nodes.sum({0, 2}, "meps_wrong"), 0);
    EXPECT_EQ(nodes.sum({0, 2}, "meps_checked"), nodes.sum({0, 2}, "meps_delivered"));
}

}  // namespace
}  // namespace daqloom::live

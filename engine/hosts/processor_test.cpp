#include "hosts/processor.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/units.hpp"
#include "hosts/node_change.hpp"

namespace daqloom::hosts {
namespace {

using base::microseconds;
using base::Time;

TEST(Processor, TakesTimeForAMessageAndForItsData) {
    Processor processor;
    processor.message_cost = microseconds(1);
    const auto rate = base::gigabits_per_second(8);  // 1000 B/us
    EXPECT_EQ(processor.work(1, 0, {}), microseconds(1));
    EXPECT_EQ(processor.work(1, 2000, rate), microseconds(3));
    EXPECT_EQ(processor.work(0, 2000, rate), microseconds(2));
    processor.slowness = 2;
    EXPECT_EQ(processor.work(1, 2000, rate), microseconds(6));
}

TEST(Processor, DoesOneTaskAfterTheOtherAndNoneWhileItIsStopped) {
    SharedCores own(0);
    Processor processor;
    EXPECT_EQ(processor.occupy(microseconds(5), microseconds(10), own), microseconds(15));
    EXPECT_EQ(processor.occupy(microseconds(5), microseconds(11), own), microseconds(20));
    processor.stopped_until = microseconds(100);
    EXPECT_EQ(processor.occupy(microseconds(5), microseconds(12), own), microseconds(105));
    processor.stopped_until = Time::never();
    EXPECT_EQ(processor.occupy(microseconds(5), microseconds(13), own), Time::never());
}

TEST(Processor, WaitsForASharedCore) {
    SharedCores two(2);
    std::vector<Processor> processors(3);
    const Time now = microseconds(10);
    EXPECT_EQ(processors[0].occupy(microseconds(5), now, two), microseconds(15));
    EXPECT_EQ(processors[1].occupy(microseconds(3), now, two), microseconds(13));
    EXPECT_EQ(processors[2].occupy(microseconds(4), now, two), microseconds(17));  // 13 + 4
}

TEST(NodeChange, BelongsToTheNodeOfItsHostOrIsRefused) {
    using What = NodeChange::What;
    const std::vector<network::NodeIndex> hosts{network::NodeIndex(7), network::NodeIndex(4)};
    NodeChange change{.at = microseconds(2), .host = hosts[1], .until = microseconds(3)};
    EXPECT_EQ(changed_node(change, hosts, false), 1U);
    change.until = change.at;
    EXPECT_EQ(changed_node(change, hosts, false).error().message,
              "change of host 4 at 2e-06 s: the stop ends at 2e-06 s; give an end after its "
              "beginning");
    change.what = What::slow;
    EXPECT_TRUE(changed_node(change, hosts, false));
    change.factor = 0.5;
    EXPECT_EQ(changed_node(change, hosts, false).error().message,
              "change of host 4 at 2e-06 s: factor 0.5; give 1 to 1e9");
    change = {.host = hosts[0], .what = What::kill};
    EXPECT_EQ(changed_node(change, hosts, false).error().message,
              "change of host 7 at 0 s: a kill needs units that regroup; set run");
    EXPECT_EQ(changed_node(change, hosts, true), 0U);
    change.host = network::NodeIndex(0);
    EXPECT_EQ(changed_node(change, hosts, true).error().message,
              "change of host 0 at 0 s: the host has no node; name the host of a node");
}

}  // namespace
}  // namespace daqloom::hosts

#include "transport/rdma_over_ethernet.hpp"

#include <gtest/gtest.h>

#include "transport/ethernet_star_test.hpp"

namespace daqloom::transport {
namespace {

/// Counts messages that have arrived.
class Arrivals : public StrictListener {
  public:
    void on_received(std::uint64_t /*tag*/, base::Time /*now*/) override { ++received; }
    void on_completed(std::uint64_t /*tag*/, base::Time /*now*/) override {}

    int received = 0;
};

/// Two hosts write 20 messages of 30 packets to a third, and every n-th packet is lost before the
/// switch. Go-back-N: each packet that leaves beyond the 600 per host is a retransmission.
TEST(RdmaOverEthernet, RetransmissionsArePacketsThatLeaveOnceMore) {
    for (const std::uint64_t period : {7U, 41U, 300U}) {
        ethernet::NetworkConfig network = star(3);
        network.losses = {{.link = ethernet::LinkIndex(0), .period = period},
                          {.link = ethernet::LinkIndex(2), .period = period + 1}};
        // Timers expire only if losses are frequent enough to lose retransmissions and NAKs.
        const auto transport = *RdmaOverEthernet::make(
            network, RdmaConfig{.retry_timeout = base::milliseconds(2)}, {});
        transport->end_at(base::seconds(1));
        for (std::uint32_t i = 0; i < 40; ++i) {
            transport->post({.from = NodeIndex(i % 2), .to = NodeIndex(2), .bytes = 30 * 4096},
                            base::Time::zero(), base::Time::zero());
        }
        Arrivals arrivals;
        transport->run(base::seconds(1), arrivals);
        EXPECT_EQ(arrivals.received, 40);
        const RetryCounters& counted = transport->retries();
        std::uint64_t left = 0;
        for (const std::uint32_t host : {0U, 2U}) {
            left += transport->ethernet()->port(ethernet::LinkIndex(host)).counters().frames;
        }
        EXPECT_EQ(left, 2 * 600 + counted.resent_for_nak + counted.resent_for_timeout);
        EXPECT_GT(counted.resent_for_nak, 0U);
        EXPECT_EQ(counted.resent_for_timeout > 0, period < 300);
    }
}

}  // namespace
}  // namespace daqloom::transport

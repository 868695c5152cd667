// UDP among three hosts around a switch at 10 Gb/s, 1 us to and from it; over the adapters of TCP,
// and of RDMA.
#include "transport/udp/endpoints.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/expected_test.hpp"
#include "transport/ethernet_star_test.hpp"
#include "transport/rdma_over_ethernet.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::Time;

constexpr Time kByte{800};
constexpr Time kCables = base::microseconds(2);

/// Records the fate of each message, and its time.
class Post : public StrictListener {
  public:
    explicit Post(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {
        transport_->end_at(base::milliseconds(10));
    }

    void send(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint64_t tag,
              ServiceLevel level = 0, Time latency = Time::zero()) {
        transport_->post({.from = NodeIndex(from),
                          .to = NodeIndex(to),
                          .bytes = bytes,
                          .tag = tag,
                          .service_level = level,
                          .completes = true,
                          .is_datagram = true},
                         latency, Time::zero());
    }
    void run() {
        transport_->run(base::milliseconds(10), *this);
        EXPECT_EQ(base::message_of(transport_->check_conservation()), "");
    }

    void on_received(std::uint64_t tag, Time now) override { received[tag] = now; }
    void on_completed(std::uint64_t tag, Time now) override { left[tag] = now; }
    void on_lost(std::uint64_t tag, Time now) override { lost[tag] = now; }

    [[nodiscard]] const UdpEndpoints& udp() const { return *transport_->udp(); }

    std::map<std::uint64_t, Time> received;
    std::map<std::uint64_t, Time> left;
    std::map<std::uint64_t, Time> lost;

  private:
    std::unique_ptr<Transport> transport_;
};

class UdpEndpointsTest : public testing::TestWithParam<bool> {
  protected:
    static Post over(const ethernet::NetworkConfig& network) {
        if (GetParam()) {
            return Post(*RdmaOverEthernet::make(network, RdmaConfig{.mtu = 4096}, {}));
        }
        return Post(*TcpOverEthernet::make(network, TcpConfig{}));
    }
    /// The largest frame: 1460 B and 40 B of headers in 18 B, or 4096 B in 62 B and the headers of
    /// a write with immediate data.
    static Bytes frame() { return GetParam() ? 4096 + 62 + 16 + 4 : 1500 + 18; }
    static Bytes payload() { return frame() - 18 - 20 - 8; }
    static Time full() { return kByte * (frame() + 20); }
};
INSTANTIATE_TEST_SUITE_P(BesideTcpAndRdma, UdpEndpointsTest, testing::Bool());

TEST_P(UdpEndpointsTest, AMessageArrivesWithItsLastDatagramAndIsCompleteWhenThatLeaves) {
    Post post = over(star(3));
    post.send(0, 2, 2 * payload() + 100, 1);
    post.run();
    const Time rest = kByte * (100 + 46 + 20);
    EXPECT_EQ(post.udp().bytes_on_wire(2 * payload() + 100), 2 * (frame() + 20) + 100 + 46 + 20);
    EXPECT_EQ(post.left.at(1), full() * 2);
    // The last frame is at the switch when half of the second one has left, and waits for its end.
    EXPECT_EQ(post.received.at(1), full() * 3 + rest + kCables);
    EXPECT_TRUE(post.lost.empty());
}

TEST_P(UdpEndpointsTest, AShortMessageIsAFrameOfTheLeastSizeAndWaitsForItsLatency) {
    Post post = over(star(3));
    post.send(0, 2, 1, 1, 0, base::microseconds(3));
    post.run();
    EXPECT_EQ(post.udp().bytes_on_wire(1), 64 + 20);
    EXPECT_EQ(post.left.at(1), base::microseconds(3));
    EXPECT_EQ(post.received.at(1), base::microseconds(3) + kByte * (2 * 84) + kCables);
}

TEST_P(UdpEndpointsTest, MessagesOfAHostLeaveOneAfterTheOther) {
    Post post = over(star(3));
    post.send(0, 1, 2 * payload(), 1);
    post.send(0, 2, payload(), 2);
    post.run();
    EXPECT_EQ(post.received.at(1), full() * 3 + kCables);
    EXPECT_EQ(post.left.at(2), full() * 2);
    EXPECT_EQ(post.received.at(2), full() * 4 + kCables);
}

/// The third frame is lost before the switch: the first of the second message, which counts as lost
/// when its other frame arrives. A message of one datagram counts as lost at the loss.
TEST_P(UdpEndpointsTest, AMessageIsLostThatLacksADatagram) {
    ethernet::NetworkConfig network = star(3);
    network.losses = {{.link = ethernet::LinkIndex(0), .period = 3}};
    Post post = over(network);
    for (std::uint64_t tag = 1; tag <= 3; ++tag) {
        post.send(0, 2, (tag == 3 ? 1 : 2) * payload(), tag);
    }
    post.run();
    EXPECT_EQ(post.left.size(), 3U);
    EXPECT_EQ(post.received.at(1), full() * 3 + kCables);
    EXPECT_EQ(post.lost.at(2), full() * 5 + kCables);
    EXPECT_EQ(post.received.at(3), full() * 6 + kCables);
    EXPECT_EQ(post.received.size(), 2U);
    network.losses[0].period = 2;
    Post single = over(network);
    single.send(0, 2, payload(), 1);
    single.send(0, 2, payload(), 2);
    single.run();
    EXPECT_EQ(single.received.size(), 1U);
    EXPECT_EQ(single.lost.at(2), full() * 2 + base::microseconds(1));
}

/// Ports that schedule classes: class 1 goes first, and class 0 keeps its order.
TEST_P(UdpEndpointsTest, AHigherClassOfAHostGoesFirst) {
    ethernet::NetworkConfig network = star(3);
    network.service_classes = {ethernet::TrafficClass(0), ethernet::TrafficClass(1)};
    network.host_schedule.scheduling = ethernet::Scheduling::strict;
    Post post = over(network);
    post.send(0, 1, 4 * payload(), 1);
    post.send(0, 2, 2 * payload(), 2, 1);
    post.run();
    // The first datagram of class 0 is already being sent when class 1 is posted.
    EXPECT_EQ(post.received.at(2), full() * 4 + kCables);
    EXPECT_EQ(post.left.at(2), full() * 2);
    EXPECT_EQ(post.received.at(1), full() * 7 + kCables);
    EXPECT_EQ(post.left.at(1), full() * 5);
}

}  // namespace
}  // namespace daqloom::transport

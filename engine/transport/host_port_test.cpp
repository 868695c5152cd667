// Shares and token buckets of the port by which a host sends, over TCP, UDP and RDMA.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "transport/ethernet_star_test.hpp"
#include "transport/rdma_over_ethernet.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::Time;

constexpr Time kByte{800};  ///< at 10 Gb/s
constexpr Time kCable = base::microseconds(1);

enum class TransportKind : std::uint8_t { tcp, udp, rdma };

/// Frames that leave host 0: the time at which the last bit leaves, and their bytes on the wire.
class Departures final : public StrictListener, private ethernet::Observer {
  public:
    struct Departure {
        Time at;
        Bytes wire;
        ethernet::TrafficClass of;
    };

    Departures(TransportKind kind, const ethernet::NetworkConfig& network) : kind_(kind) {
        if (kind == TransportKind::rdma) {
            auto made = *RdmaOverEthernet::make(network, RdmaConfig{}, {});
            made->network().ethernet().observe(this);
            transport_ = std::move(made);
        } else {
            TcpConfig tcp;
            tcp.congestion = CongestionControl::static_window;
            tcp.static_window = 2'000'000;
            auto made = *TcpOverEthernet::make(network, tcp);
            made->observe(this, nullptr);
            transport_ = std::move(made);
        }
        transport_->end_at(base::seconds(1));
    }

    void post(Bytes bytes, ServiceLevel level = 0, Time latency = Time::zero()) {
        transport_->post({.from = NodeIndex(0),
                          .to = NodeIndex(1),
                          .bytes = bytes,
                          .tag = 0,
                          .service_level = level,
                          .is_datagram = kind_ == TransportKind::udp},
                         latency, Time::zero());
    }
    void run(Time until) { transport_->run(until, *this); }

    std::vector<Departure> all;

  private:
    void on_completed(std::uint64_t /*tag*/, Time /*now*/) override {}
    void on_delivery(ethernet::LinkIndex link, const ethernet::Frame& frame, Time now) override {
        if (link == ethernet::LinkIndex(0)) {
            all.push_back(
                {now - kCable, frame.bytes + ethernet::kWireOverhead, frame.traffic_class()});
        }
    }
    void on_drop(ethernet::LinkIndex /*link*/, const ethernet::Frame& /*frame*/,
                 Time /*now*/) override {
        FAIL();
    }

    TransportKind kind_;
    std::unique_ptr<Transport> transport_;
};

// --- weights

using Weights = std::array<std::uint32_t, 3>;

class WeightsOfAHost : public testing::TestWithParam<std::tuple<TransportKind, Weights>> {
  protected:
    static ethernet::NetworkConfig network() {
        ethernet::NetworkConfig config = star(2);
        for (std::uint32_t of = 0; of < 4; ++of) {
            config.service_classes.emplace_back(of);
        }
        const Weights weights = std::get<1>(GetParam());
        config.host_schedule = {ethernet::Scheduling::weighted,
                                {weights[0], weights[1], weights[2]}};
        return config;
    }
    /// Expects the weights as shares of the wire, while all classes have frames to send.
    static void expect_shares(const ethernet::NetworkConfig& config) {
        Departures sent(std::get<0>(GetParam()), config);
        // Messages differ in size, and so do their last packets: shares are shares of bytes.
        for (int i = 0; i < 1000; ++i) {
            sent.post(100'000, 0);
            sent.post(51'000, 1);
            sent.post(51'000, 1);
            sent.post(99'400, 2);
        }
        sent.run(base::milliseconds(45));
        expect_weights(sent, 1e-3);
    }
    static void expect_weights(const Departures& sent, double tolerance) {
        const Weights weights = std::get<1>(GetParam());
        std::array<Bytes, 4> bytes{};
        for (const auto& each : sent.all) {
            bytes[each.of.value()] += each.at > base::milliseconds(2) ? each.wire : 0;
        }
        const auto sum = static_cast<double>(bytes[0] + bytes[1] + bytes[2]);
        const double all = weights[0] + weights[1] + weights[2];
        for (std::size_t of = 0; of < weights.size(); ++of) {
            EXPECT_NEAR(static_cast<double>(bytes[of]) / sum, weights[of] / all, tolerance) << of;
        }
    }
};
INSTANTIATE_TEST_SUITE_P(OverEachTransport, WeightsOfAHost,
                         testing::Combine(testing::Values(TransportKind::tcp, TransportKind::udp,
                                                          TransportKind::rdma),
                                          testing::Values(Weights{1, 2, 5}, Weights{7, 1, 3})));

TEST_P(WeightsOfAHost, ShareItsWire) { expect_shares(network()); }

/// The port is idle between frames, as under a rate limit.
TEST_P(WeightsOfAHost, ShareItsPace) {
    ethernet::NetworkConfig config = network();
    config.changes = {
        {.what = ethernet::LinkChange::What::pace, .rate = base::gigabits_per_second(7)}};
    expect_shares(config);
}

/// Class 3 has no weight: strict priority. Its messages come every 100 us and take 6 % of the wire,
/// each between two frames of the other classes, which share the rest.
TEST_P(WeightsOfAHost, ShareTheRestOfStrictPriority) {
    Departures sent(std::get<0>(GetParam()), network());
    for (int i = 0; i < 1000; ++i) {
        for (ServiceLevel level = 0; level < 3; ++level) {
            sent.post(100'000, level);
        }
    }
    for (int i = 0; i < 400; ++i) {
        sent.post(7'000, 3, base::microseconds(100 * i));
    }
    sent.run(base::milliseconds(40));
    const auto high = std::ranges::count_if(
        sent.all, [](const auto& each) { return each.of == ethernet::TrafficClass(3); });
    EXPECT_GE(high, 399 * 2);
    expect_weights(sent, 1e-3);
}

// --- token buckets

class TokenBucketOfAHost : public testing::TestWithParam<std::tuple<TransportKind, Bytes>> {};
INSTANTIATE_TEST_SUITE_P(OverEachTransport, TokenBucketOfAHost,
                         testing::Combine(testing::Values(TransportKind::tcp, TransportKind::udp,
                                                          TransportKind::rdma),
                                          testing::Values<Bytes>(0, 5'000, 14'000, 60'000)));

/// Token bucket (RFC 2697), computed directly: tokens, one per byte on the wire, come at the link's
/// rate up to the depth of the bucket, and the first frame in the queue leaves when it has its
/// tokens. A wire is a bucket of depth 0, on which a frame collects its tokens one by one.
TEST_P(TokenBucketOfAHost, ABurstLeavesAsTokensCome) {
    const auto [kind, bucket] = GetParam();
    ethernet::NetworkConfig network = star(2);
    network.buckets.assign(2, bucket);
    Departures sent(kind, network);
    // The second burst finds the bucket partly refilled, the third and fourth find it full. Each
    // burst has left when the next burst comes.
    const std::vector<std::pair<Time, std::vector<Bytes>>> bursts{
        {Time::zero(), {100'000}},
        {base::microseconds(100), {20'000}},
        {base::microseconds(400), {70'000}},
        {base::milliseconds(1), {30'000, 1'000, 1, 40'000}},
    };
    Bytes payload = 0;
    for (const auto& [at, messages] : bursts) {
        for (const Bytes each : messages) {
            sent.post(each, 0, at);
            payload += each;
        }
    }
    sent.run(base::milliseconds(2));
    Bytes wire = 0;
    Time tokens = kByte * bucket;  // at the last departure; the time in which they come
    Time last;
    for (const auto& each : sent.all) {
        wire += each.wire;
        const auto next =
            std::ranges::find_if(bursts, [&](const auto& burst) { return burst.first > each.at; });
        const Time first = std::max(last, std::prev(next)->first);  // in its queue
        tokens = std::min(kByte * bucket, tokens + (first - last));
        const Time leaves = std::max(first, first + kByte * each.wire - tokens);
        tokens += leaves - first - kByte * each.wire;
        last = leaves;
        ASSERT_EQ(each.at, leaves) << &each - sent.all.data();
    }
    EXPECT_GT(wire, payload);
}

}  // namespace
}  // namespace daqloom::transport

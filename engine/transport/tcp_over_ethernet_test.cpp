#include "transport/tcp_over_ethernet.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "transport/ethernet_star_test.hpp"

namespace daqloom::transport {
namespace {

using base::Time;

/// Host 0 sends a hundred questions to each other host, in turn, with ten outstanding. Each
/// question is answered immediately, in several segments, and each answer is followed by a question
/// to another host. The tag of question n is 2 n, that of its answer 2 n + 1.
class QuestionsAndAnswers : public StrictListener {
  public:
    static constexpr std::uint32_t kHosts = 5;
    static constexpr std::uint64_t kQuestions = 100 * (kHosts - 1);

    QuestionsAndAnswers() {
        transport->end_at(base::milliseconds(100));
        while (next_ < 10) {
            send_question(Time::zero());
        }
        transport->run(base::milliseconds(100), *this);
    }

    void expect(std::uint64_t tag) const override {
        too_late += received.contains(tag) ? 1 : 0;
        expected.insert(tag);
    }
    void on_received(std::uint64_t tag, Time now) override {
        EXPECT_TRUE(received.insert(tag).second);
        if (tag % 2 == 0) {
            post(responder(tag / 2), NodeIndex(0), 10'000, tag + 1, now);
        } else if (next_ < kQuestions) {
            send_question(now);
        }
    }

    std::unique_ptr<TcpOverEthernet> transport = *TcpOverEthernet::make(star(kHosts), TcpConfig{});
    mutable std::set<std::uint64_t> expected;
    std::set<std::uint64_t> received;
    mutable std::uint64_t too_late = 0;

  private:
    static NodeIndex responder(std::uint64_t question) {
        return NodeIndex(1 + question % (kHosts - 1));
    }
    void send_question(Time now) {
        post(NodeIndex(0), responder(next_), 100, 2 * next_, now);
        ++next_;
    }
    void post(NodeIndex from, NodeIndex to, base::Bytes bytes, std::uint64_t tag, Time now) {
        transport->post({.from = from, .to = to, .bytes = bytes, .tag = tag}, Time::zero(), now);
    }

    std::uint64_t next_ = 0;  ///< question
};

TEST(TcpOverEthernet, QuestionsAndAnswersGoOverTheConnectionOfTheirHosts) {
    const QuestionsAndAnswers all;
    EXPECT_EQ(all.received.size(), 2 * QuestionsAndAnswers::kQuestions);
    TcpEndpoints& endpoints = all.transport->endpoints();
    ASSERT_EQ(endpoints.size(), 2 * (QuestionsAndAnswers::kHosts - 1));
    for (std::uint32_t host = 1; host < QuestionsAndAnswers::kHosts; ++host) {
        const EndpointIndex there =
            endpoints.endpoint(NodeIndex(host), NodeIndex(0), TrafficClass(0));
        EXPECT_EQ(there, endpoints.known(NodeIndex(host), NodeIndex(0), TrafficClass(0)));
        EXPECT_EQ(endpoints.sender(there).end(), 100 * 10'000U);
        EXPECT_EQ(endpoints.sender(ethernet::peer(there)).end(), 100 * 100U);
    }
    // Each message is announced before it is received.
    EXPECT_EQ(all.too_late, 0U);
    EXPECT_GT(all.expected.size(), QuestionsAndAnswers::kQuestions / 2);
}

/// Messages posted together; the first has a latency: the others leave with it, in order.
/// None waits behind the frames of a later message.
class Latencies : public StrictListener {
  public:
    Latencies() {
        const auto transport = *TcpOverEthernet::make(star(4), TcpConfig{});
        transport->end_at(base::milliseconds(100));
        const auto post = [&](std::uint32_t to, base::Bytes bytes, Time latency) {
            transport->post({.from = NodeIndex(0), .to = NodeIndex(to), .bytes = bytes, .tag = to},
                            latency, Time::zero());
        };
        post(1, 100, base::microseconds(50));
        post(2, 100'000, base::microseconds(20));
        post(3, 100, Time::zero());
        transport->run(base::milliseconds(100), *this);
    }
    void on_received(std::uint64_t tag, Time now) override { received.emplace_back(tag, now); }

    std::vector<std::pair<std::uint64_t, Time>> received;
};

TEST(TcpOverEthernet, MessagesOfAHostLeaveInTheOrderInWhichTheyArePosted) {
    const Latencies all;
    ASSERT_EQ(all.received.size(), 3U);
    EXPECT_EQ(all.received[0].first, 1U);
    EXPECT_GT(all.received[0].second, base::microseconds(50));
    EXPECT_LT(all.received[0].second, base::microseconds(60));
}

/// A message of three segments from host 0 to host 1, and an answer of one segment; hosts process
/// packets after `latency`.
class LatePackets : public StrictListener {
  public:
    explicit LatePackets(const base::DelayDistribution& latency) {
        TcpConfig tcp;
        tcp.packet_latency = latency;
        transport = *TcpOverEthernet::make(star(2), tcp);
        transport->end_at(base::milliseconds(100));
        transport->post({.from = NodeIndex(0), .to = NodeIndex(1), .bytes = 3 * 1448, .tag = 0},
                        Time::zero(), Time::zero());
        transport->run(base::milliseconds(100), *this);
    }
    void on_received(std::uint64_t tag, Time now) override {
        received.push_back(now);
        if (tag == 0) {
            transport->post({.from = NodeIndex(1), .to = NodeIndex(0), .bytes = 100, .tag = 1},
                            Time::zero(), now);
        }
    }

    std::unique_ptr<TcpOverEthernet> transport;
    std::vector<Time> received;
};

/// Question and answer have one packet each way in sequence: with 70 µs of latency per packet, the
/// question arrives 70 µs later and the answer 140 µs later.
TEST(TcpOverEthernet, AHostTakesNoteOfAPacketAfterItsLatency) {
    const LatePackets at_once({});
    const LatePackets late({.mean = base::microseconds(70)});
    ASSERT_EQ(at_once.received.size(), 2U);
    ASSERT_EQ(late.received.size(), 2U);
    EXPECT_EQ(late.received[0], at_once.received[0] + base::microseconds(70));
    EXPECT_EQ(late.received[1], at_once.received[1] + base::microseconds(140));
}

/// No packet overtakes another, for any latencies: no packet seems lost, so that none is sent
/// twice.
TEST(TcpOverEthernet, LatePacketsStayInOrder) {
    using Kind = base::DelayDistribution::Kind;
    const LatePackets late({.kind = Kind::exponential, .mean = base::microseconds(200)});
    EXPECT_EQ(late.received.size(), 2U);
    const TcpSenderCounters& counted =
        late.transport->endpoints().sender(ethernet::EndpointIndex(0)).counters();
    EXPECT_EQ(counted.fast_retransmissions + counted.probe_retransmissions +
                  counted.timeout_retransmissions,
              0U);
}

}  // namespace
}  // namespace daqloom::transport

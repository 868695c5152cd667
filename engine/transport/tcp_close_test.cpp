#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/expected_test.hpp"
#include "base/random.hpp"
#include "transport/ethernet_star_test.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::Time;

/// Writes messages and closes hosts at given times, and records the events of each message.
class Script : public Listener {
  public:
    struct Fate {
        std::vector<Time> received;
        std::vector<Time> completed;
        std::vector<Time> failed;
    };

    explicit Script(std::uint32_t hosts)
        : transport_(*TcpOverEthernet::make(star(hosts), TcpConfig{})) {}

    void at(Time when, std::function<void()> action) {
        actions_.push_back(std::move(action));
        transport_->events().push(
            {when, Transport::kFirstOtherEvent, static_cast<std::uint32_t>(actions_.size() - 1)});
    }
    void write_at(Time when, std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint64_t tag,
                  bool completes = false, Time latency = Time::zero()) {
        at(when, [=, this] {
            transport_->post({.from = NodeIndex(from),
                              .to = NodeIndex(to),
                              .bytes = bytes,
                              .tag = tag,
                              .completes = completes},
                             latency, transport_->now());
        });
    }
    void close_at(Time when, std::uint32_t host) {
        at(when, [=, this] { transport_->close(NodeIndex(host), transport_->now(), *this); });
    }
    void run(Time until) {
        transport_->end_at(until);
        transport_->run(until, *this);
    }

    void on_received(std::uint64_t tag, Time now) override { fates[tag].received.push_back(now); }
    void on_completed(std::uint64_t tag, Time now) override { fates[tag].completed.push_back(now); }
    void on_failed(std::uint64_t tag, Time now) override { fates[tag].failed.push_back(now); }
    void on_event(const sim::Event& event) override { actions_[event.index](); }

    [[nodiscard]] const TcpOverEthernet& transport() const { return *transport_; }

    std::map<std::uint64_t, Fate> fates;

  private:
    std::unique_ptr<TcpOverEthernet> transport_;
    std::vector<std::function<void()>> actions_;
};

const Time closing = base::microseconds(200);

/// A reset is a frame of minimum size; with preamble and gap, it is sent twice: over two cables at
/// 10 Gb/s, with 1 us each.
Time way_of_a_reset() {
    const base::WireClock wire(base::gigabits_per_second(10));
    return (wire(ethernet::kMinimumFrame + ethernet::kWireOverhead) + base::microseconds(1)) * 2;
}

TEST(TcpClose, TheOtherEndIsNotifiedByAReset) {
    Script script(3);
    script.write_at(Time::zero(), 0, 1, 1'000'000, 1, true);  // 0.8 ms
    script.close_at(closing, 1);
    script.run(base::seconds(10));
    ASSERT_EQ(script.fates[1].failed.size(), 1U);
    const Time failed = script.fates[1].failed.front();
    // The other host also sends acknowledgements, one of which may delay the reset.
    EXPECT_GE(failed, closing + way_of_a_reset() - base::nanoseconds(40));
    EXPECT_LE(failed, closing + way_of_a_reset() + base::nanoseconds(200));
    EXPECT_TRUE(script.fates[1].received.empty());
    EXPECT_TRUE(script.fates[1].completed.empty());
}

TEST(TcpClose, OutgoingMessagesOfItsProcessFailAtOnce) {
    Script script(3);
    script.write_at(Time::zero(), 1, 0, 1'000'000, 1, true);
    script.write_at(Time::zero(), 1, 2, 1'000'000, 2);
    script.close_at(closing, 1);
    script.run(base::seconds(10));
    for (const std::uint64_t tag : {1, 2}) {
        EXPECT_EQ(script.fates[tag].failed, std::vector{closing});
        EXPECT_TRUE(script.fates[tag].received.empty());
    }
}

TEST(TcpClose, AMessageWithoutItsCompletionFailsOnlyIfItRequestsOne) {
    Script script(2);
    Script again(2);
    for (Script* const each : {&script, &again}) {
        each->write_at(Time::zero(), 0, 1, 1'000, 1, true);
        each->write_at(Time::zero(), 0, 1, 1'000, 2);
    }
    script.run(base::milliseconds(1));
    const Time arrived = script.fates[2].received.at(0);
    ASSERT_GT(script.fates[1].completed.at(0), arrived);  // by the way back
    const Time closed = arrived + Time{1};                // the completion is under way
    again.close_at(closed, 0);
    again.run(base::milliseconds(100));
    EXPECT_EQ(again.fates[1].received.size(), 1U);
    EXPECT_TRUE(again.fates[1].completed.empty());
    EXPECT_EQ(again.fates[1].failed, std::vector{closed});
    EXPECT_EQ(again.fates[2].received.size(), 1U);
    EXPECT_TRUE(again.fates[2].failed.empty());
}

TEST(TcpClose, OthersGoOn) {
    Script script(3);
    script.write_at(Time::zero(), 0, 2, 1'000'000, 1, true);
    script.write_at(Time::zero(), 0, 1, 1'000, 2, true);
    script.close_at(closing, 1);
    script.run(base::seconds(10));
    EXPECT_EQ(script.fates[1].completed.size(), 1U);
    EXPECT_EQ(script.fates[2].completed.size(), 1U);
    EXPECT_TRUE(script.fates[1].failed.empty());
    EXPECT_TRUE(script.fates[2].failed.empty());
}

/// A reset connection stays closed until either host, with a new process there, connects.
TEST(TcpClose, AConnectionThatWasResetIsNotWrittenToAgain) {
    Script script(2);
    script.write_at(Time::zero(), 0, 1, 1'000, 1);
    script.close_at(closing, 1);
    script.write_at(closing + base::microseconds(100), 0, 1, 1'000, 2);
    script.write_at(closing + base::microseconds(200), 1, 0, 1'000, 3);
    script.write_at(closing + base::microseconds(300), 0, 1, 1'000, 4);
    script.close_at(closing + base::microseconds(400), 1);
    script.close_at(closing + base::microseconds(410), 0);
    script.write_at(closing + base::microseconds(500), 0, 1, 1'000, 5, true);
    script.run(base::seconds(10));
    EXPECT_EQ(script.fates[2].failed, std::vector{closing + base::microseconds(100)});
    EXPECT_TRUE(script.fates[2].received.empty());
    for (const std::uint64_t tag : {1, 3, 4, 5}) {
        EXPECT_EQ(script.fates[tag].received.size(), 1U) << tag;
        EXPECT_TRUE(script.fates[tag].failed.empty()) << tag;
    }
    EXPECT_EQ(script.transport().endpoints().size(), 6U);
}

TEST(TcpClose, AMessageOfAnEndedProcessIsNotWrittenByTheNextOne) {
    Script script(2);
    script.write_at(Time::zero(), 0, 1, 1'000, 1, false, closing + base::microseconds(50));
    script.close_at(closing, 0);
    script.write_at(closing, 0, 1, 1'000, 2);
    script.run(base::seconds(10));
    EXPECT_TRUE(script.fates[1].received.empty());
    EXPECT_EQ(script.fates[1].failed, std::vector{closing + base::microseconds(50)});
    EXPECT_EQ(script.fates[2].received.size(), 1U);
}

/// Every message is received or fails. A message that requests its completion is also completed or
/// fails. No event happens twice.
TEST(TcpClose, EachMessageHasItsFateInRandomRuns) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        base::RandomStream random(seed, "closing");
        Script script(4);
        const auto below = [&](std::uint64_t end) { return random.uniform_int(end); };
        const auto moment = [&] {
            return base::microseconds(static_cast<std::int64_t>(below(5'000)));
        };
        std::map<std::uint64_t, bool> completes;
        for (std::uint64_t tag = 0; tag < 100; ++tag) {
            const auto from = static_cast<std::uint32_t>(below(4));
            const auto to = static_cast<std::uint32_t>((from + 1 + below(3)) % 4);
            completes[tag] = below(2) == 0;
            script.write_at(moment(), from, to, static_cast<Bytes>(1 + below(200'000)), tag,
                            completes[tag], below(3) == 0 ? moment() : Time::zero());
        }
        for (int i = 0; i < 6; ++i) {
            script.close_at(moment(), static_cast<std::uint32_t>(below(4)));
        }
        script.run(base::seconds(100));
        SCOPED_TRACE(seed);
        for (const auto& [tag, fate] : script.fates) {
            EXPECT_LE(fate.received.size(), 1U) << tag;
            const auto& end = completes[tag] ? fate.completed : fate.received;
            EXPECT_EQ(end.size() + fate.failed.size(), 1U) << tag;
        }
        EXPECT_EQ(script.fates.size(), 100U);
        EXPECT_EQ(base::message_of(script.transport().check_conservation()), "");
    }
}

}  // namespace
}  // namespace daqloom::transport

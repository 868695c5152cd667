#include "protocol/machines/pull_readout.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::DelayDistribution;
using base::Time;

struct Answer {
    Time delay;
    EventId event;
    BuilderIndex builder;
    Bytes bytes;
    friend bool operator==(const Answer&, const Answer&) = default;
};

struct Outputs {
    std::vector<Answer> timers;
    std::vector<Answer> sent;

    void respond_after(Time delay, EventId event, BuilderIndex builder, Bytes bytes) {
        timers.push_back({delay, event, builder, bytes});
    }
    void send_fragment(EventId event, BuilderIndex builder, Bytes bytes) {
        sent.push_back({Time::zero(), event, builder, bytes});
    }
};

PullReadout readout(DelayDistribution response_time) {
    return {response_time, base::RandomStream(1, "readout")};
}

TEST(PullReadout, AnswersARequestAfterTheResponseTime) {
    PullReadout unit = readout({.mean = base::microseconds(8)});
    Outputs out;
    unit.on_request(EventId{3}, BuilderIndex(5), 104'167, out);
    EXPECT_EQ(out.timers,
              (std::vector<Answer>{{base::microseconds(8), EventId{3}, BuilderIndex(5), 104'167}}));
    EXPECT_TRUE(out.sent.empty());
    EXPECT_EQ(unit.pending(), 1U);
    unit.on_response_due(EventId{3}, BuilderIndex(5), 104'167, out);
    EXPECT_EQ(out.sent,
              (std::vector<Answer>{{Time::zero(), EventId{3}, BuilderIndex(5), 104'167}}));
    EXPECT_EQ(unit.pending(), 0U);
    EXPECT_EQ(unit.counters().fragment_bytes, 104'167U);
}

TEST(PullReadout, DrawsResponseTimesFromItsOwnStream) {
    const DelayDistribution response{DelayDistribution::Kind::exponential, base::microseconds(8),
                                     Time::zero()};
    PullReadout unit = readout(response);
    base::RandomStream same(1, "readout");
    Outputs out;
    for (std::uint64_t event = 0; event < 100; ++event) {
        unit.on_request(EventId{event}, BuilderIndex(), 1, out);
        ASSERT_EQ(out.timers.back().delay, response.draw(same));
    }
}

TEST(PullReadout, CountsAndIgnoresWhatDoesNotFit) {
    PullReadout unit = readout({});
    Outputs out;
    unit.on_request(EventId{1}, BuilderIndex(), -1, out);
    unit.on_response_due(EventId{1}, BuilderIndex(), 100, out);  // nothing was requested
    EXPECT_TRUE(out.timers.empty());
    EXPECT_TRUE(out.sent.empty());
    EXPECT_EQ(unit.counters().unexpected_requests, 1U);
    EXPECT_EQ(unit.counters().unexpected_responses, 1U);
    EXPECT_EQ(unit.counters().fragments, 0U);
}

}  // namespace
}  // namespace daqloom::protocol

// Units whose builder units request fragments, in a world that delays and reorders messages and
// writes, loses nodes, and also delivers messages that no unit sends.
#include "protocol/units/requested_unit.hpp"

#include <gtest/gtest.h>

#include "protocol/units/daqpipe_check_test.hpp"
#include "protocol/units/pull_check_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Time;

/// Expects that all invariants hold, and that all kinds of inputs have occurred, more than once.
template <class Check>
void expect_promises_kept(std::uint64_t lost_requests, std::uint64_t strange) {
    const auto all = Check::play_random(3'000);
    EXPECT_EQ(all.broken_promise, "");
    EXPECT_GT(all.built, 5'000U);
    EXPECT_GT(all.incomplete, 100U);
    EXPECT_GT(all.dropped, 100U);
    EXPECT_GE(all.lost_requests, lost_requests);
    EXPECT_GT(all.from_lost, 50U);
    EXPECT_GT(all.late, 50U);
    EXPECT_GT(all.absent, 50U);
    EXPECT_GE(all.strange, strange);
}

TEST(DaqpipeUnit, KeepsItsPromisesWhenUnitsAreLostAndTheEpochIsClosed) {
    expect_promises_kept<DaqpipeCheck>(21, 0);
}

TEST(DaqpipeUnit, TakesRequestedFragmentsThoughALostBuilderUnitHoldsTheOldestEvent) {
    EXPECT_EQ(DaqpipeCheck::play(base::random_bytes(7'352, 50, 1'000)).broken_promise, "");
}

TEST(PullUnit, KeepsItsPromisesWhenUnitsAreLostAndTheEpochIsClosed) {
    expect_promises_kept<PullCheck>(0, 5'001);
}

/// A world that only records arrivals at the event manager.
struct Quiet {
    std::vector<Time> arrivals;

    void send(ReadoutIndex /*to*/, const UnitMessage& /*message*/) {}
    void send(BuilderIndex /*to*/, const UnitMessage& /*message*/) {}
    static base::Bytes held(EventId /*event*/) { return 0; }
    void write(EventId /*event*/, BuilderIndex /*to*/, base::Bytes /*at*/, base::Bytes /*size*/) {}
    void give_back(std::uint32_t /*count*/) {}
    void arrived(Time at) { arrivals.push_back(at); }
    void assigned(EventId /*event*/, BuilderIndex /*builder*/) {}
    void collect(EventId /*event*/, std::uint32_t /*slot*/) {}
    static base::Bytes place(std::uint32_t /*slot*/, ReadoutIndex /*readout*/) { return 0; }
    void deliver(EventId /*event*/, std::uint32_t /*slot*/) {}
};

TEST(PullUnit, ReportsTheTimeOfAnArrivalNotOfItsPlan) {
    PullUnitConfig config{.readout = ReadoutIndex(), .begin = base::seconds(5)};
    config.rules.arrivals = {.kind = ArrivalsConfig::Kind::deterministic, .rate_hz = 1e6};
    config.rules.concurrent_events = 2;
    auto unit = PullUnit::make(config);
    ASSERT_TRUE(unit);
    Quiet world;
    const auto at = [](std::int64_t ns) { return base::seconds(5) + base::nanoseconds(ns); };
    // One event arrives each microsecond. From the third one on, events wait for a builder unit.
    for (const std::int64_t ns : {999, 1'000, 3'700, 3'900, 4'001}) {
        unit->on_time(at(ns), world);
    }
    EXPECT_EQ(world.arrivals, (std::vector{at(1'000), at(3'700), at(3'700), at(4'001)}));
    EXPECT_EQ(unit->manager()->backlog(), 2U);
}

template <class Unit>
class RequestedUnits : public testing::Test {};
using Units = testing::Types<DaqpipeUnit, PullUnit>;
TYPED_TEST_SUITE(RequestedUnits, Units);

TYPED_TEST(RequestedUnits, RefuseMessagesThatNoUnitSends) {
    auto unit = TypeParam::make({.readout = ReadoutIndex(1), .readouts = 2, .builders = 2});
    ASSERT_TRUE(unit);
    Quiet world;
    const base::Bytes offset = 0;
    const auto no_readout = ReadoutIndex::none();
    const auto no_builder = BuilderIndex::none();
    const BuilderIndex one(1);
    const std::uint64_t ahead = std::is_same_v<TypeParam, DaqpipeUnit> ? 2 : 128;
    using Kind = UnitMessage::Kind;
    struct Case {
        bool is_accepted;
        ReadoutIndex readout;
        BuilderIndex builder;
        UnitMessage message;
        const char* why;
    };
    const std::vector<Case> cases = {
        {true, no_readout, one, {Kind::request, 0, 0, {&offset, 1}}, ""},
        {false, no_readout, one, {Kind::request, 0, 0, {&offset, 1}}, "twice"},
        {false, no_readout, one, {Kind::request, 0, 1, {}}, "to no place"},
        {true, no_readout, one, {Kind::request, 0, ahead - 1, {&offset, 1}}, ""},
        {false, no_readout, one, {Kind::request, 0, ahead, {&offset, 1}}, "not yet assigned"},
        {false, no_readout, one + 1, {Kind::request, 0, 0, {&offset, 1}}, "two builder units"},
        {false, ReadoutIndex(), no_builder, {Kind::request, 0, 0, {&offset, 1}}, "builds nothing"},
        {false, ReadoutIndex(), one, {Kind::assign, 0, 0, {}}, "this one builds nothing"},
        {false, no_readout, one, {Kind::done, 0, 0, {}}, "it manages nothing"},
        {false, no_readout, no_builder, {Kind::last_answer, 0, 0, {}}, "from no builder unit"},
        {false, no_readout, one, {Kind::grant, 0, 0, {&offset, 1}}, "that is shift"},
    };
    for (const Case& each : cases) {
        EXPECT_EQ(unit->on_message(each.readout, each.builder, each.message, Time::zero(), world),
                  each.is_accepted)
            << static_cast<int>(each.message.kind) << ' ' << each.message.number << ' ' << each.why;
    }
    EXPECT_TRUE(unit->waits_for_data());
    EXPECT_EQ(unit->unexpected_messages(), 0U);
}

TEST(PullUnit, RefusesALastRequestThatIsNotTheLast) {
    auto unit = PullUnit::make({.readout = ReadoutIndex(1), .readouts = 2, .builders = 1});
    ASSERT_TRUE(unit);
    Quiet world;
    const base::Bytes offset = 0;
    const auto is_accepted = [&](const UnitMessage& message) {
        return unit->on_message(ReadoutIndex::none(), BuilderIndex(), message, Time::zero(), world);
    };
    using Kind = UnitMessage::Kind;
    EXPECT_TRUE(is_accepted({Kind::request, 0, 5, {&offset, 1}}));
    EXPECT_FALSE(is_accepted({Kind::last_answer, 0, 0, {}})) << "it has made more requests";
    EXPECT_TRUE(is_accepted({Kind::last_answer, 0, 1, {}}));
}

}  // namespace
}  // namespace daqloom::protocol

// Pull building's units in a world that delays and reorders whatever it may, loses nodes, and says
// what nobody has said.
#include "protocol/units/pull_unit.hpp"

#include <gtest/gtest.h>

#include "base/byte_source_test.hpp"
#include "protocol/units/pull_check_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Time;

TEST(PullUnit, KeepsItsPromisesWhenUnitsAreLostAndTheEpochIsClosed) {
    const auto all = PullCheck::play_random(3'000);
    EXPECT_EQ(all.broken_promise, "");
    // All that can happen has happened, and more than once.
    EXPECT_GT(all.built, 5'000U);
    EXPECT_GT(all.incomplete, 100U);
    EXPECT_GT(all.dropped, 100U);
    EXPECT_GT(all.from_lost, 50U);
    EXPECT_GT(all.late, 50U);
    EXPECT_GT(all.absent, 50U);
    EXPECT_GT(all.strange, 5'000U);
}

/// A world in which nothing happens but arrivals at the event manager.
struct Quiet {
    std::vector<Time> arrivals;

    void send(ReadoutIndex /*to*/, const UnitMessage& /*message*/) {}
    void send(BuilderIndex /*to*/, const UnitMessage& /*message*/) {}
    void write(EventId /*event*/, BuilderIndex /*to*/, base::Bytes /*offset*/) {}
    void give_back(std::uint32_t /*count*/) {}
    void arrived(Time at) { arrivals.push_back(at); }
    void assigned(EventId /*event*/, BuilderIndex /*builder*/) {}
    void collect(EventId /*event*/, std::uint32_t /*slot*/) {}
    base::Bytes place(std::uint32_t /*slot*/, ReadoutIndex /*readout*/) const { return 0; }
    void deliver(EventId /*event*/, std::uint32_t /*slot*/) {}
};

TEST(PullUnit, TellsWhenAnEventWasTakenNotWhenItWasPlanned) {
    PullUnitConfig config{.readout = ReadoutIndex(), .begin = base::seconds(5)};
    config.rules.arrivals = {.kind = ArrivalsConfig::Kind::deterministic, .rate_hz = 1e6};
    config.rules.concurrent_events = 2;
    auto unit = PullUnit::make(config);
    ASSERT_TRUE(unit);
    Quiet world;
    const auto at = [](std::int64_t ns) { return base::seconds(5) + base::nanoseconds(ns); };
    // One is planned each microsecond; from the third on, they wait for a builder unit.
    unit->on_time(at(999), world);
    unit->on_time(at(1'000), world);
    unit->on_time(at(3'700), world);
    unit->on_time(at(3'900), world);
    unit->on_time(at(4'001), world);
    EXPECT_EQ(world.arrivals, (std::vector{at(1'000), at(3'700), at(3'700), at(4'001)}));
    EXPECT_EQ(unit->manager()->backlog(), 2U);
}

TEST(PullUnit, RefusesWhatNobodySays) {
    auto unit = PullUnit::make({.readout = ReadoutIndex(1), .readouts = 2, .builders = 1});
    ASSERT_TRUE(unit);
    Quiet world;
    using Kind = UnitMessage::Kind;
    const base::Bytes offset = 0;
    const auto is_accepted = [&](ReadoutIndex readout, BuilderIndex builder,
                                 const UnitMessage& message) {
        return unit->on_message(readout, builder, message, Time::zero(), world);
    };
    const auto no_readout = ReadoutIndex::none();
    EXPECT_TRUE(is_accepted(no_readout, BuilderIndex(), {Kind::request, 0, 5, {&offset, 1}}));
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::request, 0, 5, {&offset, 1}}))
        << "twice";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::request, 0, 6, {}}))
        << "to no place";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::request, 0, 1'000, {&offset, 1}}))
        << "nobody has been given that event yet";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(1), {Kind::request, 0, 6, {&offset, 1}}))
        << "there is one builder unit";
    EXPECT_FALSE(is_accepted(ReadoutIndex(), BuilderIndex::none(), {Kind::assign, 0, 1, {}}))
        << "it builds nothing";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::done, 0, 1, {}}))
        << "it manages nothing";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::last_answer, 0, 0, {}}))
        << "it has made more requests";
    EXPECT_TRUE(is_accepted(no_readout, BuilderIndex(), {Kind::last_answer, 0, 1, {}}));
}

}  // namespace
}  // namespace daqloom::protocol

// DAQPIPE's units in a world that delays and reorders whatever it may, and loses nodes.
#include "protocol/units/daqpipe_unit.hpp"

#include <gtest/gtest.h>

#include "base/byte_source_test.hpp"
#include "protocol/units/daqpipe_check_test.hpp"

namespace daqloom::protocol {
namespace {

TEST(DaqpipeUnit, KeepsItsPromisesWhenUnitsAreLostAndTheEpochIsClosed) {
    const auto all = DaqpipeCheck::play_random(3'000);
    EXPECT_EQ(all.broken_promise, "");
    // All that can happen has happened, and more than once.
    EXPECT_GT(all.built, 5'000U);
    EXPECT_GT(all.incomplete, 100U);
    EXPECT_GT(all.dropped, 100U);
    EXPECT_GT(all.lost_requests, 20U);
    EXPECT_GT(all.from_lost, 50U);
    EXPECT_GT(all.late, 50U);
    EXPECT_GT(all.absent, 50U);
}

struct Nothing {
    void send(ReadoutIndex, const UnitMessage&) {}
    void send(BuilderIndex, const UnitMessage&) {}
    static base::Bytes held(EventId) { return 0; }
    void write(EventId, BuilderIndex, base::Bytes, base::Bytes) {}
    void give_back(std::uint32_t) {}
    void assigned(EventId, BuilderIndex) {}
    void collect(EventId, std::uint32_t) {}
    static base::Bytes place(std::uint32_t, ReadoutIndex) { return 0; }
    void deliver(EventId, std::uint32_t) {}
};

TEST(DaqpipeUnit, RefusesWhatNobodySays) {
    auto unit = DaqpipeUnit::make({.readout = ReadoutIndex(1), .readouts = 2, .builders = 2});
    ASSERT_TRUE(unit);
    Nothing world;
    using Kind = UnitMessage::Kind;
    const base::Bytes offset = 0;
    const auto is_accepted = [&](ReadoutIndex readout, BuilderIndex builder,
                                 const UnitMessage& message) {
        return unit->on_message(readout, builder, message, base::Time::zero(), world);
    };
    const auto no_readout = ReadoutIndex::none();
    EXPECT_TRUE(is_accepted(no_readout, BuilderIndex(1), {Kind::request, 0, 1, {&offset, 1}}));
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(1), {Kind::request, 0, 1, {&offset, 1}}))
        << "twice";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(1), {Kind::request, 0, 0, {}}))
        << "to no place";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(1), {Kind::request, 0, 2, {&offset, 1}}))
        << "two builder units with a credit each collect two events";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(2), {Kind::request, 0, 0, {&offset, 1}}))
        << "there are two builder units";
    EXPECT_FALSE(
        is_accepted(ReadoutIndex(), BuilderIndex::none(), {Kind::request, 0, 0, {&offset, 1}}))
        << "it builds nothing";
    EXPECT_FALSE(is_accepted(ReadoutIndex(), BuilderIndex(), {Kind::assign, 0, 0, {}}))
        << "this one builds nothing";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::done, 0, 0, {}}))
        << "it manages nothing";
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex::none(), {Kind::last_answer, 0, 0, {}}));
    EXPECT_FALSE(is_accepted(no_readout, BuilderIndex(), {Kind::grant, 0, 0, {&offset, 1}}))
        << "that is shift";
    EXPECT_EQ(unit->waits_for_data(), true);
    EXPECT_EQ(unit->unexpected_messages(), 0U);
}

}  // namespace
}  // namespace daqloom::protocol

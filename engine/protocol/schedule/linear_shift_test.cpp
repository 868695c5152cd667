#include "protocol/schedule/linear_shift.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace daqloom::protocol {
namespace {

constexpr std::uint32_t no_unit = ~0U;

/// The units in the slots, by their numbers.
template <class Unit>
base::Table<SlotIndex, Unit> in_slots(const std::vector<std::uint32_t>& units) {
    base::Table<SlotIndex, Unit> in;
    for (const std::uint32_t unit : units) {
        in.push_back(Unit(unit));
    }
    return in;
}
base::expected<LinearShift> make(const std::vector<std::uint32_t>& readouts,
                                 const std::vector<std::uint32_t>& builders) {
    return LinearShift::make(in_slots<ReadoutIndex>(readouts), in_slots<BuilderIndex>(builders));
}
/// Number of the builder unit to which a readout unit sends, and the reverse function.
std::uint32_t builder_for(const LinearShift& shift, std::uint32_t unit, std::uint32_t phase) {
    return shift.builder_for(ReadoutIndex(unit), phase).value();
}
std::uint32_t readout_for(const LinearShift& shift, std::uint32_t unit, std::uint32_t phase) {
    return shift.readout_for(BuilderIndex(unit), phase).value();
}

TEST(LinearShift, OfFiveNodesIsTheOneOfThePaper) {
    // Phase n: node i sends to (n + i) mod 5, written out.
    constexpr std::array<std::array<std::uint32_t, 5>, 5> expected = {
        {{0, 1, 2, 3, 4}, {1, 2, 3, 4, 0}, {2, 3, 4, 0, 1}, {3, 4, 0, 1, 2}, {4, 0, 1, 2, 3}}};
    const LinearShift shift = *LinearShift::folded(5);
    EXPECT_EQ(shift.phases(), 5U);
    for (std::uint32_t phase = 0; phase < 5; ++phase) {
        for (std::uint32_t unit = 0; unit < 5; ++unit) {
            EXPECT_EQ(builder_for(shift, unit, phase), expected[phase][unit]);
        }
    }
}

/// Expects at most one partner per unit and phase, mutual, and each partner once in a round.
void expect_each_pair_once(const LinearShift& shift) {
    std::set<std::pair<ReadoutIndex, BuilderIndex>> met;
    for (std::uint32_t phase = 0; phase < shift.phases(); ++phase) {
        std::set<BuilderIndex> receivers;
        for (const ReadoutIndex unit : base::IndexRange<ReadoutIndex>(shift.readouts())) {
            const BuilderIndex builder = shift.builder_for(unit, phase);
            if (builder != BuilderIndex::none()) {
                EXPECT_TRUE(receivers.insert(builder).second) << "two senders in phase " << phase;
                EXPECT_TRUE(met.emplace(unit, builder).second) << "met twice";
                EXPECT_EQ(shift.readout_for(builder, phase), unit);
            }
        }
        for (const BuilderIndex unit : base::IndexRange<BuilderIndex>(shift.builders())) {
            EXPECT_EQ(shift.readout_for(unit, phase) != ReadoutIndex::none(),
                      receivers.contains(unit));
        }
    }
    EXPECT_EQ(met.size(), std::size_t{shift.readouts()} * shift.builders());
}

TEST(LinearShift, LetsEachPairMeetOnceInARound) {
    constexpr std::array<SlotIndex, 3> dummies = {SlotIndex(0), SlotIndex(4), SlotIndex(6)};
    for (std::uint32_t slots = 1; slots < 10; ++slots) {
        expect_each_pair_once(*LinearShift::folded(slots));
    }
    expect_each_pair_once(*LinearShift::folded(7, dummies));
    expect_each_pair_once(*LinearShift::unfolded(3, 8));
    expect_each_pair_once(*LinearShift::unfolded(8, 3));
    // A partly folded schedule, whose units are not in the order of the slots.
    expect_each_pair_once(*make({2, no_unit, 0, 1}, {no_unit, 1, 0, 2}));
}

TEST(LinearShift, KeepsTheSlotsOfDummies) {
    constexpr std::array<SlotIndex, 1> dummies = {SlotIndex(1)};
    const LinearShift shift = *LinearShift::folded(4, dummies);
    // Slots 0, 2, 3 hold nodes 0, 1, 2; node 0 sends to slots 0, 1, 2, 3.
    EXPECT_EQ(shift.readouts(), 3U);
    EXPECT_EQ(shift.slot_of_readout(ReadoutIndex(1)).value(), 2U);
    EXPECT_EQ(builder_for(shift, 0, 0), 0U);
    EXPECT_EQ(builder_for(shift, 0, 1), no_unit);
    EXPECT_EQ(builder_for(shift, 0, 2), 1U);
    EXPECT_EQ(builder_for(shift, 0, 3), 2U);
    EXPECT_EQ(readout_for(shift, 1, 1), no_unit);
}

TEST(LinearShift, OfUnfoldedUnitsHasAsManyPhasesAsTheLargerSide) {
    const LinearShift shift = *LinearShift::unfolded(2, 3);
    EXPECT_EQ(shift.phases(), 3U);
    EXPECT_EQ(builder_for(shift, 1, 2), 0U);       // (1 + 2) mod 3
    EXPECT_EQ(readout_for(shift, 0, 1), no_unit);  // (0 − 1) mod 3 = 2: there are only two
    EXPECT_EQ(builder_for(*LinearShift::unfolded(3, 2), 1, 1), no_unit);  // (1 + 1) mod 3 = 2
}

TEST(LinearShift, WalksThroughAReadoutUnitsRound) {
    constexpr std::array<SlotIndex, 1> dummies = {SlotIndex(0)};
    const LinearShift shift = *LinearShift::folded(3, dummies);
    std::vector<std::uint32_t> round;
    for (std::uint32_t phase = 0; phase < shift.phases(); ++phase) {
        round.push_back(builder_for(shift, 1, phase));
    }
    EXPECT_EQ(round, (std::vector{1U, no_unit, 0U}));  // in slot 2: sends to slots 2, 0, 1
}

TEST(LinearShift, OfTheMembersOfAnEpochNumbersThemInTheOrderOfTheirSlots) {
    // Slots with both units, a readout unit, no unit, a builder unit, and both units.
    const std::array<LinearShift::Member, 5> slots = {
        {{true, true}, {true, false}, {false, false}, {false, true}, {true, true}}};
    const LinearShift kept = *LinearShift::of_members(slots, true);
    EXPECT_EQ(kept.phases(), 5U);
    EXPECT_EQ(kept.slot_of_readout(ReadoutIndex(2)).value(), 4U);
    EXPECT_EQ(kept.slot_of_builder(BuilderIndex(1)).value(), 3U);
    EXPECT_EQ(builder_for(kept, 0, 2), no_unit);
    const LinearShift closed_up = *LinearShift::of_members(slots, false);
    EXPECT_EQ(closed_up.phases(), 4U);
    EXPECT_EQ(closed_up.slot_of_readout(ReadoutIndex(2)).value(), 3U);
    EXPECT_EQ(closed_up.slot_of_builder(BuilderIndex(1)).value(), 2U);
    EXPECT_EQ(builder_for(closed_up, 0, 2), 1U);
    expect_each_pair_once(kept);
    expect_each_pair_once(closed_up);
    EXPECT_FALSE(LinearShift::of_members(std::span(slots).subspan(1, 2), true));  // no builder
}

TEST(LinearShift, RefusesAnImpossibleScheduleInASentence) {
    constexpr std::array<SlotIndex, 2> twice = {SlotIndex(1), SlotIndex(1)};
    EXPECT_EQ(LinearShift::folded(0).error().message, "linear shift: 0 slots; give 1 to 65536");
    EXPECT_EQ(LinearShift::folded(3, twice).error().message,
              "linear shift: dummy in slot 1; give slots 0 to 2, each once");
    EXPECT_EQ(LinearShift::unfolded(0, 2).error().message,
              "linear shift: no readout unit; give at least one");
    EXPECT_EQ(
        make({0, 2}, {0, 1}).error().message,
        "linear shift: readout unit 2 in slot 1; number the 2 units 0 to 1, each in one slot");
    EXPECT_NE(make({0}, {0, 1}).error().message.find("as many"), std::string::npos);
}

}  // namespace
}  // namespace daqloom::protocol

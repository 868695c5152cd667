#include "protocol/schedule/linear_shift.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace daqloom::protocol {
namespace {

constexpr std::uint32_t nobody = LinearShift::nobody;

TEST(LinearShift, OfFiveNodesIsTheOneOfThePaper) {
    // Phase n: node i sends to (n + i) mod 5, written out.
    constexpr std::array<std::array<BuilderIndex, 5>, 5> expected = {
        {{0, 1, 2, 3, 4}, {1, 2, 3, 4, 0}, {2, 3, 4, 0, 1}, {3, 4, 0, 1, 2}, {4, 0, 1, 2, 3}}};
    const LinearShift shift = *LinearShift::folded(5);
    EXPECT_EQ(shift.phases(), 5U);
    for (std::uint32_t phase = 0; phase < 5; ++phase) {
        for (ReadoutIndex unit = 0; unit < 5; ++unit) {
            EXPECT_EQ(shift.builder_for(unit, phase), expected[phase][unit]);
        }
    }
}

/// In each phase a unit has at most one partner, who says the same; in a round, each once.
void expect_each_pair_once(const LinearShift& shift) {
    std::set<std::pair<ReadoutIndex, BuilderIndex>> met;
    for (std::uint32_t phase = 0; phase < shift.phases(); ++phase) {
        std::set<BuilderIndex> receivers;
        for (ReadoutIndex unit = 0; unit < shift.readouts(); ++unit) {
            const BuilderIndex builder = shift.builder_for(unit, phase);
            if (builder != nobody) {
                EXPECT_TRUE(receivers.insert(builder).second) << "two senders in phase " << phase;
                EXPECT_TRUE(met.emplace(unit, builder).second) << "met twice";
                EXPECT_EQ(shift.readout_for(builder, phase), unit);
            }
        }
        for (BuilderIndex unit = 0; unit < shift.builders(); ++unit) {
            EXPECT_EQ(shift.readout_for(unit, phase) != nobody, receivers.contains(unit));
        }
    }
    EXPECT_EQ(met.size(), std::size_t{shift.readouts()} * shift.builders());
}

TEST(LinearShift, LetsEachPairMeetOnceInARound) {
    constexpr std::array<SlotIndex, 3> dummies = {0, 4, 6};
    for (std::uint32_t slots = 1; slots < 10; ++slots) {
        expect_each_pair_once(*LinearShift::folded(slots));
    }
    expect_each_pair_once(*LinearShift::folded(7, dummies));
    expect_each_pair_once(*LinearShift::unfolded(3, 8));
    expect_each_pair_once(*LinearShift::unfolded(8, 3));
    // Folded in part, and not in the order of the slots.
    expect_each_pair_once(*LinearShift::make({2, nobody, 0, 1}, {nobody, 1, 0, 2}));
}

TEST(LinearShift, KeepsTheSlotsOfDummies) {
    constexpr std::array<SlotIndex, 1> dummies = {1};
    const LinearShift shift = *LinearShift::folded(4, dummies);
    // Slots 0, 2, 3 hold nodes 0, 1, 2; node 0 sends to slots 0, 1, 2, 3.
    EXPECT_EQ(shift.readouts(), 3U);
    EXPECT_EQ(shift.slot_of_readout(1), 2U);
    EXPECT_EQ(shift.builder_for(0, 0), 0U);
    EXPECT_EQ(shift.builder_for(0, 1), nobody);
    EXPECT_EQ(shift.builder_for(0, 2), 1U);
    EXPECT_EQ(shift.builder_for(0, 3), 2U);
    EXPECT_EQ(shift.readout_for(1, 1), nobody);
}

TEST(LinearShift, OfUnfoldedUnitsHasAsManyPhasesAsTheLargerSide) {
    const LinearShift shift = *LinearShift::unfolded(2, 3);
    EXPECT_EQ(shift.phases(), 3U);
    EXPECT_EQ(shift.builder_for(1, 2), 0U);      // (1 + 2) mod 3
    EXPECT_EQ(shift.readout_for(0, 1), nobody);  // (0 − 1) mod 3 = 2: there are only two
    EXPECT_EQ(LinearShift::unfolded(3, 2)->builder_for(1, 1), nobody);  // (1 + 1) mod 3 = 2
}

TEST(LinearShift, WalksThroughAReadoutUnitsRound) {
    constexpr std::array<SlotIndex, 1> dummies = {0};
    const LinearShift shift = *LinearShift::folded(3, dummies);
    std::vector<std::pair<std::uint32_t, BuilderIndex>> turns;
    for (const auto [phase, builder] : shift.turns_of(1)) {  // in slot 2: sends to slots 2, 0, 1
        turns.emplace_back(phase, builder);
    }
    EXPECT_EQ(turns, (decltype(turns){{0, 1}, {2, 0}}));
}

TEST(LinearShift, OfTheMembersOfAnEpochNumbersThemInTheOrderOfTheirSlots) {
    // Both, a readout unit, nobody, a builder unit, both.
    const std::array<LinearShift::Member, 5> slots = {
        {{true, true}, {true, false}, {false, false}, {false, true}, {true, true}}};
    const LinearShift kept = *LinearShift::of_members(slots, true);
    EXPECT_EQ(kept.phases(), 5U);
    EXPECT_EQ(kept.slot_of_readout(2), 4U);
    EXPECT_EQ(kept.slot_of_builder(1), 3U);
    EXPECT_EQ(kept.builder_for(0, 2), nobody);
    const LinearShift closed_up = *LinearShift::of_members(slots, false);
    EXPECT_EQ(closed_up.phases(), 4U);
    EXPECT_EQ(closed_up.slot_of_readout(2), 3U);
    EXPECT_EQ(closed_up.slot_of_builder(1), 2U);
    EXPECT_EQ(closed_up.builder_for(0, 2), 1U);
    expect_each_pair_once(kept);
    expect_each_pair_once(closed_up);
    EXPECT_FALSE(LinearShift::of_members(std::span(slots).subspan(1, 2), true));  // no builder
}

TEST(LinearShift, RefusesAnImpossibleScheduleInASentence) {
    constexpr std::array<SlotIndex, 2> twice = {1, 1};
    EXPECT_EQ(LinearShift::folded(0).error().message, "linear shift: 0 slots; give 1 to 65536");
    EXPECT_EQ(LinearShift::folded(3, twice).error().message,
              "linear shift: dummy in slot 1; give slots 0 to 2, each once");
    EXPECT_EQ(LinearShift::unfolded(0, 2).error().message,
              "linear shift: no readout unit; give at least one");
    EXPECT_EQ(
        LinearShift::make({0, 2}, {0, 1}).error().message,
        "linear shift: readout unit 2 in slot 1; number the 2 units 0 to 1, each in one slot");
    EXPECT_NE(LinearShift::make({0}, {0, 1}).error().message.find("as many"), std::string::npos);
}

}  // namespace
}  // namespace daqloom::protocol

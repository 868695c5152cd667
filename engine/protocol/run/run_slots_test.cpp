#include "protocol/run/run_slots.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

std::vector<UnitIndex> units(std::initializer_list<int> numbers) {
    std::vector<UnitIndex> found;
    for (const int number : numbers) {
        found.push_back(number < 0 ? no_unit : UnitIndex(number));
    }
    return found;
}

/// Such as "0 - 2(1)/3": folded unit 0, a dummy, and unit 2 with readout unit 1 of the run, beside
/// the builder unit of unit 3. What is in brackets is left out where it is the number of the unit.
std::string as_text(const std::vector<EpochSlot>& slots) {
    std::string all;
    const auto name = [](UnitIndex unit) {
        return unit == no_unit ? std::string("-") : std::to_string(unit.value());
    };
    for (const EpochSlot& slot : slots) {
        all += all.empty() ? "" : " ";
        all += name(slot.readout);
        if (slot.in_run.value() != slot.readout.value()) {
            all += fmt::format("({})", slot.in_run.value());
        }
        if (slot.builder != slot.readout) {
            all += fmt::format("/{}", name(slot.builder));
        }
    }
    return all;
}

TEST(RunSlots, WhoIsNoMemberLeavesADummyOrNothing) {
    RunSlots run = RunSlots::folded(3);
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 - 2");
    run.keeps_lost = false;
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 2");
    run.readouts.insert(run.readouts.begin() + 1, no_unit);  // a dummy always
    run.builders.insert(run.builders.begin() + 1, no_unit);
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 - 2");
}

TEST(RunSlots, WhatHasMovedIsInTheSlotOfItsHolder) {
    RunSlots run{.readouts = units({0, -1, 1}),
                 .builders = units({0, -1, 1}),
                 .spares = units({-1, 2, -1, 3})};
    EXPECT_EQ(as_text(slots_of(run, units({0, 1}), {})), "0 - 1") << "that of spare 3 is behind";
    const Moved together{UnitIndex(1), UnitIndex(2), UnitIndex(2)};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), std::vector{together})), "0 2(1) -");
    const Moved apart{UnitIndex(1), UnitIndex(2), UnitIndex(3)};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2, 3}), std::vector{apart})), "0 2(1)/- - -/3");
    run.keeps_lost = false;
    EXPECT_EQ(as_text(slots_of(run, units({0, 1}), {})), "0 1");
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), std::vector{together})), "0 2(1)");
}

/// Readout units of units 0 and 1 and builder units of units 2 and 3 share slots. Unit 2, back
/// again, takes over the builder unit of unit 3 and finds spare 4 at its own in its own slot.
TEST(RunSlots, WhereTheHoldersSlotIsTakenWhatHasMovedIsWhereItWas) {
    const RunSlots run{
        .readouts = units({0, 1, -1}), .builders = units({2, 3, -1}), .spares = units({-1, -1, 4})};
    const std::vector moved{Moved{UnitIndex(2), no_unit, UnitIndex(4)},
                            Moved{UnitIndex(3), no_unit, UnitIndex(2)}};
    EXPECT_EQ(as_text(slots_of(run, units({0, 1, 2, 4}), moved)), "0/2 1/- -/4");
    // A readout unit of unit 0 with unit 2, whose slot has that of unit 1's neighbour: its own.
    const std::vector reads{Moved{UnitIndex(1), UnitIndex(2), no_unit},
                            Moved{UnitIndex(2), no_unit, UnitIndex(4)}};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2, 3, 4}), reads)), "0/- 2(1)/3 -/4");
}

TEST(RunSlots, ReadoutUnitsOfAnEpochAreInTheOrderOfTheRunWhereverTheyAre) {
    RunSlots run = RunSlots::folded(4);
    run.spares = units({-1, -1, -1, -1, 4});
    const std::vector moved{Moved{UnitIndex(1), UnitIndex(4), UnitIndex(4)}};
    const auto slots = slots_of(run, units({0, 3, 4}), moved);
    EXPECT_EQ(as_text(slots), "0 - - 3 4(1)");
    EXPECT_EQ(slots[0].in_epoch.value(), 0U);
    EXPECT_EQ(slots[4].in_epoch.value(), 1U);
    EXPECT_EQ(slots[3].in_epoch.value(), 2U);
}

TEST(RunSlots, RearrangedReadoutUnitsKeepTheirNumbers) {
    RunSlots run = RunSlots::folded(3);
    run.spares = units({-1, -1, -1, 3});
    const RunSlots other = run.rearranged(units({2, -1, 0, 1}), units({0, 1, 2, -1}));
    const Moved moved{UnitIndex(1), UnitIndex(3), UnitIndex(3)};
    EXPECT_EQ(as_text(slots_of(other, units({0, 1, 2}), {})), "2/0 -/1 0/2 1/-");
    EXPECT_EQ(as_text(slots_of(other, units({0, 2, 3}), std::vector{moved})), "2/0 - 0/2 - 3(1)");
    EXPECT_EQ(other.rearranged(units({1, 2, 0}), units({0, 1, 2})).readout_numbers()[UnitIndex(2)],
              ReadoutIndex(2));
}

TEST(RunSlots, ReadoutUnitsAreNumberedInTheOrderOfTheirSlots) {
    const RunSlots run{.readouts = units({4, -1, 1}), .builders = units({0, 2}), .spares = {}};
    const auto numbers = run.readout_numbers();
    EXPECT_EQ(run.units(), 5U);
    EXPECT_EQ(numbers[UnitIndex(4)].value(), 0U);
    EXPECT_EQ(numbers[UnitIndex(1)].value(), 1U);
    EXPECT_EQ(numbers[UnitIndex(2)], ReadoutIndex::none());
}

}  // namespace

}  // namespace daqloom::protocol

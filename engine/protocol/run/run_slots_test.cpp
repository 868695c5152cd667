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

/// Text of slots, such as "0 - 2(1)/3": folded unit 0; a dummy; unit 2 with the run's readout unit
/// 1 (left out if equal to the unit's number), and the builder unit of unit 3.
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

TEST(RunSlots, AUnitThatIsNoMemberLeavesADummyOrNothing) {
    RunSlots run = RunSlots::folded(3);
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 - 2");
    run.keeps_lost = false;
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 2");
    run.readouts.insert(run.readouts.begin() + 1, no_unit);  // a dummy always
    run.builders.insert(run.builders.begin() + 1, no_unit);
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), {})), "0 - 2");
}

TEST(RunSlots, AMovedUnitIsInTheSlotOfItsHolder) {
    RunSlots run{.readouts = units({0, -1, 1}),
                 .builders = units({0, -1, 1}),
                 .spares = units({-1, 2, -1, 3})};
    EXPECT_EQ(as_text(slots_of(run, units({0, 1}), {})), "0 - 1") << "that of spare 3 is behind";
    const RoleHolders together{UnitIndex(1), UnitIndex(2), UnitIndex(2)};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), std::vector{together})), "0 2(1) -");
    const RoleHolders apart{UnitIndex(1), UnitIndex(2), UnitIndex(3)};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2, 3}), std::vector{apart})), "0 2(1)/- - -/3");
    run.keeps_lost = false;
    EXPECT_EQ(as_text(slots_of(run, units({0, 1}), {})), "0 1");
    EXPECT_EQ(as_text(slots_of(run, units({0, 2}), std::vector{together})), "0 2(1)");
}

/// Unit 2 comes back and takes over the builder unit of unit 3, in its own slot. Its own builder
/// unit stays with spare 4, in the slot of the spare.
TEST(RunSlots, AMovedUnitStaysInItsSlotIfTheHoldersSlotIsTaken) {
    const RunSlots run{
        .readouts = units({0, 1, -1}), .builders = units({2, 3, -1}), .spares = units({-1, -1, 4})};
    const std::vector moved{RoleHolders{UnitIndex(2), no_unit, UnitIndex(4)},
                            RoleHolders{UnitIndex(3), no_unit, UnitIndex(2)}};
    EXPECT_EQ(as_text(slots_of(run, units({0, 1, 2, 4}), moved)), "0/2 1/- -/4");
    // Unit 2 holds the readout unit of unit 1 in slot 1, because its own slot has readout unit 0.
    const std::vector reads{RoleHolders{UnitIndex(1), UnitIndex(2), no_unit},
                            RoleHolders{UnitIndex(2), no_unit, UnitIndex(4)}};
    EXPECT_EQ(as_text(slots_of(run, units({0, 2, 3, 4}), reads)), "0/- 2(1)/3 -/4");
}

TEST(RunSlots, ReadoutUnitsOfAnEpochAreInTheOrderOfTheRunWhereverTheyAre) {
    RunSlots run = RunSlots::folded(4);
    run.spares = units({-1, -1, -1, -1, 4});
    const std::vector moved{RoleHolders{UnitIndex(1), UnitIndex(4), UnitIndex(4)}};
    const auto slots = slots_of(run, units({0, 3, 4}), moved);
    EXPECT_EQ(as_text(slots), "0 - - 3 4(1)");
    EXPECT_EQ(slots[0].in_epoch.value(), 0U);
    EXPECT_EQ(slots[4].in_epoch.value(), 1U);
    EXPECT_EQ(slots[3].in_epoch.value(), 2U);
}

TEST(RunSlots, RearrangedReadoutUnitsKeepTheirNumbers) {
    RunSlots run = RunSlots::folded(3);
    run.spares = units({-1, -1, -1, 3});
    const RunSlots other = run.rearranged(units({2, -1, 0, 1}), units({0, 1, 2, -1})).value();
    const RoleHolders moved{UnitIndex(1), UnitIndex(3), UnitIndex(3)};
    EXPECT_EQ(as_text(slots_of(other, units({0, 1, 2}), {})), "2/0 -/1 0/2 1/-");
    EXPECT_EQ(as_text(slots_of(other, units({0, 2, 3}), std::vector{moved})), "2/0 - 0/2 - 3(1)");
    EXPECT_EQ(other.rearranged(units({1, 2, 0}), units({0, 1, 2}))->readout_numbers()[UnitIndex(2)],
              ReadoutIndex(2));
    EXPECT_FALSE(run.is_rearranged());
    EXPECT_TRUE(other.is_rearranged());
}

TEST(RunSlots, AreNotRearrangedWithOtherUnits) {
    const RunSlots run = RunSlots::folded(3);
    const auto same = units({2, 0, 1});
    EXPECT_TRUE(run.rearranged(same, units({0, 1, 2})));
    EXPECT_FALSE(run.rearranged(same, units({0, 1, 1}))) << "a unit with two slots";
    EXPECT_FALSE(run.rearranged(same, units({0, 1, -1}))) << "a unit without a slot";
    EXPECT_FALSE(run.rearranged(units({2, 0, 3}), same)) << "a unit that the run does not have";
    EXPECT_FALSE(run.rearranged(same, units({2, 0, 1, -1}))) << "lists of different lengths";
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

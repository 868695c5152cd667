#include "live/node/epoch/members.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <vector>

#include "live/transport/units_test.hpp"

namespace daqloom::live {
namespace {

constexpr std::uint32_t no_unit = ~0U;
using Numbers = std::vector<std::uint32_t>;

/// Numbers in a table of units and roles, in its order.
template <class Table>
Numbers numbers(const Table& table) {
    Numbers all;
    for (const auto index : table) {
        all.push_back(index.value());
    }
    return all;
}

/// Numbers of units in a run, and of readout and builder units in an epoch, are different types.
template <class A, class B>
concept Different = !std::convertible_to<A, B> && !std::convertible_to<B, A> &&
                    !std::constructible_from<A, B> && !std::equality_comparable_with<A, B>;
static_assert(Different<UnitIndex, protocol::ReadoutIndex>);
static_assert(Different<UnitIndex, protocol::BuilderIndex>);

std::uint32_t builder_for(const Members& members, std::uint32_t readout, std::uint32_t phase) {
    return members.shift.builder_for(protocol::ReadoutIndex(readout), phase).value();
}

NodeConfig folded_slots(Units slots) {
    NodeConfig config;
    config.slots.readouts = config.slots.builders = std::move(slots);
    return config;
}

TEST(Members, AreNumberedInTheOrderOfTheirSlots) {
    const auto members = Members::of(folded_slots({2, no_unit, 0, 1}).slots, Units{0, 1, 2});
    ASSERT_TRUE(members);
    EXPECT_EQ(numbers(members->readouts), (Numbers{2, 0, 1}));
    EXPECT_EQ(numbers(members->builders), (Numbers{2, 0, 1}));
    EXPECT_EQ(numbers(members->readout_of), (Numbers{1, 2, 0}));
    EXPECT_EQ(members->shift.phases(), 4) << "a slot that never had a unit stays a dummy";
    EXPECT_EQ(members->readouts_in_run, 3);
}

TEST(Members, ALostOneLeavesADummyOrNoSlot) {
    NodeConfig config = folded_slots({0, 1, 2, 3});
    config.slots.keeps_lost = true;
    auto members = Members::of(config.slots, Units{0, 2, 3});
    ASSERT_TRUE(members);
    EXPECT_EQ(members->shift.phases(), 4);
    EXPECT_EQ(builder_for(*members, 0, 1), no_unit);
    EXPECT_EQ(builder_for(*members, 0, 2), 1) << "unit 2 is builder unit 1 of the epoch";
    EXPECT_EQ(numbers(members->readout_of), (Numbers{0, no_unit, 1, 2}));
    EXPECT_EQ(numbers(members->readout_in_run), (Numbers{0, 2, 3}));

    config.slots.keeps_lost = false;
    members = Members::of(config.slots, Units{0, 2, 3});
    ASSERT_TRUE(members);
    EXPECT_EQ(members->shift.phases(), 3);
    EXPECT_EQ(builder_for(*members, 0, 1), 1);
    EXPECT_EQ(members->readouts_in_run, 4);
}

TEST(Members, UnfoldedUnitsHaveOneRoleEach) {
    NodeConfig config;
    config.slots.readouts = Units{0, 2};
    config.slots.builders = Units{1, 3};
    const auto members = Members::of(config.slots, Units{0, 1, 3});
    ASSERT_TRUE(members);
    EXPECT_EQ(numbers(members->readouts), (Numbers{0}));
    EXPECT_EQ(numbers(members->builders), (Numbers{1, 3}));
    EXPECT_EQ(numbers(members->readout_of), (Numbers{0, no_unit, no_unit, no_unit}));
    EXPECT_EQ(numbers(members->builder_of), (Numbers{no_unit, 0, no_unit, 1}));
    EXPECT_EQ(members->shift.phases(), 2) << "the builder unit of slot 1 is still there";
}

protocol::RoleHolders moved(std::uint32_t unit, std::uint32_t readout, std::uint32_t builder) {
    return {UnitIndex(unit), UnitIndex(readout), UnitIndex(builder)};
}

TEST(Members, ASpareReadsOutAndBuildsInThePlaceOfALostUnit) {
    NodeConfig config = folded_slots({0, 1, 2});
    config.slots.spares = Units{no_unit, no_unit, no_unit, 3};
    const std::vector together{moved(1, 3, 3)};
    const auto members = Members::of(config.slots, Units{0, 2, 3}, together);
    ASSERT_TRUE(members);
    EXPECT_EQ(numbers(members->readouts), (Numbers{0, 3, 2})) << "as in the run";
    EXPECT_EQ(numbers(members->builders), (Numbers{0, 2, 3})) << "as in the slots";
    EXPECT_EQ(numbers(members->readout_in_run), (Numbers{0, 1, 2}));
    EXPECT_EQ(members->reads_out(UnitIndex(3)).value(), 1);
    EXPECT_TRUE(members->builds(UnitIndex(3)));
    EXPECT_EQ(members->reads_out(UnitIndex(1)), protocol::ReadoutIndex::none());
}

/// The list of moved units comes from the network, so it is validated.
TEST(Members, ImpossibleMovesAreRefused) {
    NodeConfig config;
    config.slots = {.readouts = Units{0, no_unit},
                    .builders = Units{1, no_unit},
                    .spares = Units{no_unit, 2},
                    .keeps_lost = true};
    const Units members{0, 1, 2};
    EXPECT_TRUE(Members::of(config.slots, members, std::vector{moved(0, 2, no_unit)}));
    for (const auto& wrong : {
             std::vector{moved(7, 2, no_unit)},                        // no unit
             std::vector{moved(0, 7, no_unit)},                        // held by no unit
             std::vector{moved(0, 2, 2)},                              // it had no builder unit
             std::vector{moved(1, 2, 2)},                              // nor the other a readout
             std::vector{moved(0, 2, no_unit), moved(0, 1, no_unit)},  // twice
         }) {
        EXPECT_FALSE(Members::of(config.slots, members, wrong)) << wrong[0].unit.value();
    }
    EXPECT_FALSE(Members::of(config.slots, Units{0, 1}, std::vector{moved(0, 2, no_unit)}))
        << "the holder is no member";
    NodeConfig whole = folded_slots({0, 1});
    whole.slots.spares = Units{no_unit, no_unit, 2};
    EXPECT_FALSE(Members::of(whole.slots, members, std::vector{moved(0, 2, 2), moved(1, 2, 2)}))
        << "one holder of two";
}

TEST(Members, WithoutReadoutOrBuilderUnitsThereIsNoEpoch) {
    NodeConfig config;
    config.slots.readouts = Units{0, 2};
    config.slots.builders = Units{1, 3};
    EXPECT_FALSE(Members::of(config.slots, Units{0, 2}));
    EXPECT_FALSE(Members::of(config.slots, Units{1, 3}));
    config.slots.builders = Units{1};
    EXPECT_FALSE(Members::of(config.slots, Units{0, 1}));
}

}  // namespace
}  // namespace daqloom::live

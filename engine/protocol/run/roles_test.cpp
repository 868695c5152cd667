#include "protocol/run/roles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

/// Folded units, and spares in slots of their own behind them.
RunPlan with_spares(std::uint32_t folded, std::uint32_t spares) {
    RunPlan plan{.units = folded + spares, .slots = RunSlots::folded(folded)};
    plan.slots.spares.assign(folded, no_unit);
    for (std::uint32_t spare = 0; spare < spares; ++spare) {
        plan.slots.spares.emplace_back(folded + spare);
    }
    return plan;
}

Roles roles_of(const RunPlan& plan, std::initializer_list<std::uint32_t> available) {
    return Roles(plan).among(members_of(available));
}

TEST(Roles, AllUnitsReadOutAndBuildByDefault) {
    const RunPlan plan{.units = 3};
    EXPECT_EQ(roles_of(plan, {0, 2}).readouts(), members_of({0, 2}));
    EXPECT_EQ(roles_of(plan, {2, 0}).builders(), (std::vector{unit_at(0), unit_at(2)}));
    EXPECT_TRUE(roles_of(plan, {1}).is_viable());
    EXPECT_FALSE(roles_of(plan, {}).is_viable());
}

TEST(Roles, HoldersAreTooFewWithoutAReadoutUnitOrWithoutABuilderUnit) {
    const RunPlan plan{.units = 5,
                       .slots = {.readouts = units_at({0, 1, 2}), .builders = units_at({4, 3})},
                       .fewest_members = 2};
    EXPECT_TRUE(roles_of(plan, {0, 3}).is_viable());
    EXPECT_FALSE(roles_of(plan, {0, 1, 2}).is_viable());
    EXPECT_FALSE(roles_of(plan, {3, 4}).is_viable());
    EXPECT_FALSE(roles_of(plan, {0}).is_viable());
    EXPECT_EQ(Roles(plan).readouts(), members_of({0, 1, 2}));
    EXPECT_EQ(Roles(plan).holders(), members_of({0, 1, 2, 3, 4}));
}

TEST(Roles, WithoutBuildingAloneTheOnlyReadoutUnitIsApartFromAllBuilderUnits) {
    RunPlan plan{.units = 2, .builds_alone = false};
    EXPECT_TRUE(roles_of(plan, {0, 1}).is_viable());
    EXPECT_FALSE(roles_of(plan, {0}).is_viable());
    plan.slots = {.readouts = units_at({0}), .builders = units_at({1})};
    EXPECT_TRUE(roles_of(plan, {0, 1}).is_viable());
    plan.slots = {.readouts = units_at({0}), .builders = units_at({0, 1})};
    EXPECT_FALSE(roles_of(plan, {0, 1}).is_viable());
}

TEST(Roles, BuildersTakeTurnsInTheOrderOfThePlan) {
    const RunPlan plan{.units = 4,
                       .slots = {.readouts = units_at({1}), .builders = units_at({2, 0, 3})}};
    EXPECT_EQ(roles_of(plan, {0, 1, 2}).builders(), units_at({2, 0}));
}

TEST(Roles, WithoutASpareTheRolesOfALostUnitWaitForItsReturn) {
    const RunPlan plan{.units = 3};
    const Roles without = roles_of(plan, {0, 2});
    EXPECT_EQ(without.holders(), members_of({0, 2}));
    EXPECT_TRUE(without.moved().empty());
    EXPECT_FALSE(without.is_complete());
    const Roles again = without.among(members_of({0, 1, 2}));
    EXPECT_TRUE(again.is_complete());
    EXPECT_TRUE(again.moved().empty());
}

TEST(Roles, TheRolesOfALostUnitMoveToASpareAndStayThere) {
    const RunPlan plan = with_spares(3, 2);
    EXPECT_EQ(Roles(plan).among(members_of({0, 1, 2, 3, 4})).holders(), members_of({0, 1, 2}));
    const Roles moved = roles_of(plan, {0, 2, 3, 4});
    EXPECT_EQ(moved.holders(), members_of({0, 2, 3}));
    EXPECT_EQ(moved.moved(), (std::vector{RoleHolders{unit_at(1), unit_at(3), unit_at(3)}}));
    EXPECT_TRUE(moved.is_complete());
    // Unit 1 comes back without roles, so it is a spare that takes the roles of unit 2.
    const Roles back = moved.among(members_of({0, 1, 2, 3, 4}));
    EXPECT_EQ(back.moved(), moved.moved());
    const Roles next = back.among(members_of({0, 1, 3, 4}));
    EXPECT_EQ(next.holders(), members_of({0, 1, 3}));
    EXPECT_EQ(next.moved(), (std::vector{RoleHolders{unit_at(1), unit_at(3), unit_at(3)},
                                         RoleHolders{unit_at(2), unit_at(1), unit_at(1)}}));
}

TEST(Roles, ASpareThatIsLostItselfIsReplacedLikeAnyOther) {
    const RunPlan plan = with_spares(2, 2);
    const Roles first = roles_of(plan, {0, 2, 3});
    const Roles second = first.among(members_of({0, 3}));
    EXPECT_EQ(second.moved(), (std::vector{RoleHolders{unit_at(1), unit_at(3), unit_at(3)}}));
    // When no spare is left, the lost unit takes back its own roles.
    const Roles third = second.among(members_of({0, 1}));
    EXPECT_TRUE(third.moved().empty());
    EXPECT_EQ(third.holders(), members_of({0, 1}));
}

TEST(Roles, ApartTheReadoutUnitsComeFirst) {
    RunPlan plan = with_spares(4, 3);
    plan.moves_apart = true;
    const Roles moved = roles_of(plan, {0, 1, 4, 5, 6});
    EXPECT_EQ(moved.moved(), (std::vector{RoleHolders{unit_at(2), unit_at(4), unit_at(6)},
                                          RoleHolders{unit_at(3), unit_at(5), no_unit}}));
    EXPECT_EQ(moved.readouts(), members_of({0, 1, 4, 5}));
    EXPECT_EQ(moved.builders(), (std::vector{unit_at(0), unit_at(1), unit_at(6)}));
    // A lost unit that comes back takes its own roles that no unit holds.
    const Roles back = moved.among(members_of({0, 1, 3, 4, 5, 6}));
    EXPECT_EQ(back.moved(), (std::vector{RoleHolders{unit_at(2), unit_at(4), unit_at(6)},
                                         RoleHolders{unit_at(3), unit_at(5), unit_at(3)}}));
    EXPECT_TRUE(back.is_complete());
}

TEST(Roles, ApartOrUnfoldedASpareTakesTheFreeRoles) {
    const RunPlan plan{.units = 4,
                       .slots = {.readouts = {unit_at(0), no_unit, no_unit},
                                 .builders = {unit_at(1), no_unit, no_unit},
                                 .spares = {no_unit, unit_at(2), unit_at(3)}}};
    const Roles moved = roles_of(plan, {1, 2});
    EXPECT_EQ(moved.moved(), (std::vector{RoleHolders{unit_at(0), unit_at(2), no_unit}}));
    const Roles both = roles_of(plan, {2, 3});
    EXPECT_EQ(both.readouts(), members_of({2}));
    EXPECT_EQ(both.builders(), units_at({3}));
}

TEST(Roles, AUnitTakesBackItsReadoutUnitBesideItsBuilderUnit) {
    RunPlan plan = with_spares(2, 1);
    plan.moves_apart = true;
    // The spare holds the readout unit of unit 0, which came back to its own builder unit.
    const Roles apart = Roles(plan).among(members_of({1, 2})).among(members_of({0, 1, 2}));
    ASSERT_EQ(apart.moved(), (std::vector{RoleHolders{unit_at(0), unit_at(2), unit_at(0)}}));
    EXPECT_TRUE(apart.among(members_of({0, 1})).moved().empty());
}

/// Spares 2, 3 and 4, which held both readout units, are gone; each unit builds for the other one.
TEST(Roles, UnitsThatCouldNotBuildEventsBeginAnew) {
    RunPlan plan = with_spares(2, 3);
    plan.moves_apart = true;
    Roles roles(plan);
    for (const Members& available : {members_of({1, 2, 3}), members_of({2, 3, 4}),
                                     members_of({0, 2, 3, 4}), members_of({0, 1, 2, 4})}) {
        roles = roles.among(available);
    }
    ASSERT_EQ(roles.moved(), (std::vector{RoleHolders{unit_at(0), unit_at(2), unit_at(1)},
                                          RoleHolders{unit_at(1), unit_at(4), unit_at(0)}}));
    const Roles anew = roles.among(members_of({0, 1}));
    EXPECT_TRUE(anew.is_viable());
    EXPECT_TRUE(anew.moved().empty());
}

TEST(Roles, EachReadoutAndBuilderUnitIsHeldOnceWhileUnitsComeAndGo) {
    base::RandomStream random(1, "roles");
    for (int run = 0; run < 200; ++run) {
        const auto spares = static_cast<std::uint32_t>(random.uniform_int(4));
        const auto homes = static_cast<std::uint32_t>(1 + random.uniform_int(6));
        RunPlan plan = with_spares(homes, spares);
        plan.moves_apart = run % 2 == 0;
        Roles roles(plan);
        for (int step = 0; step < 30; ++step) {
            Members available;
            for (std::uint32_t unit = 0; unit < plan.units; ++unit) {
                if (random.uniform_int(4) > 0) {
                    available.insert(unit_at(unit));
                }
            }
            const Members before = roles.readouts();
            roles = roles.among(available);
            EXPECT_TRUE(std::ranges::includes(available, roles.holders()));
            for (const UnitIndex unit : before) {
                EXPECT_TRUE(roles.readouts().contains(unit) || !available.contains(unit) ||
                            roles.moved().empty())
                    << "a readout unit stays where it is, unless all begin anew";
            }
            if (std::ranges::includes(available, Roles(plan).holders())) {
                EXPECT_TRUE(roles.is_viable()) << "all that began are there";
            }
            // Each role has one holder, and all available units have a role while a role lacks one.
            if (!plan.moves_apart) {
                EXPECT_EQ(roles.readouts().size(), std::min<std::size_t>(homes, available.size()));
            }
            EXPECT_TRUE(roles.is_complete() || roles.holders() == available);
            EXPECT_LE(roles.builders().size(), homes);
        }
    }
}

}  // namespace

}  // namespace daqloom::protocol

#include "protocol/run/run_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

TEST(RunPlan, AllUnitsReadOutAndBuildUnlessItSaysWhich) {
    const RunPlan plan{.units = 3};
    EXPECT_TRUE(plan.is_readout(unit_at(2)));
    EXPECT_EQ(plan.builders_among(members_of({2, 0})), (std::vector{unit_at(0), unit_at(2)}));
    EXPECT_TRUE(plan.is_viable(members_of({1})));
    EXPECT_FALSE(plan.is_viable({}));
}

TEST(RunPlan, MembersAreTooFewWithoutAReadoutUnitOrWithoutABuilderUnit) {
    const RunPlan plan{.units = 5,
                       .builders = {unit_at(4), unit_at(3)},
                       .readouts = members_of({0, 1, 2}),
                       .fewest_members = 2};
    EXPECT_TRUE(plan.is_viable(members_of({0, 3})));
    EXPECT_FALSE(plan.is_viable(members_of({0, 1, 2})));
    EXPECT_FALSE(plan.is_viable(members_of({3, 4})));
    EXPECT_FALSE(plan.is_viable(members_of({0})));
    EXPECT_TRUE(plan.is_readout(unit_at(0)));
    EXPECT_FALSE(plan.is_readout(unit_at(3)));
}

TEST(RunPlan, BuildersTakeTurnsInTheOrderOfThePlan) {
    const RunPlan plan{.units = 4, .builders = {unit_at(2), unit_at(0), unit_at(3)}};
    EXPECT_EQ(plan.builders_among(members_of({0, 1, 2})), (std::vector{unit_at(2), unit_at(0)}));
}

}  // namespace

}  // namespace daqloom::protocol

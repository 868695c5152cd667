#include "protocol/run/suspicions.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

TEST(Suspicions, OnlyOtherMembersCanBeAccused) {
    Suspicions accusers;
    const std::vector accused{unit_at(1), unit_at(2), unit_at(7)};
    add_suspicions(accusers, unit_at(1), accused, members_of({0, 1, 2}));
    add_suspicions(accusers, unit_at(0), accused, members_of({0, 1, 2}));
    EXPECT_EQ(accusers,
              (Suspicions{{unit_at(1), members_of({0})}, {unit_at(2), members_of({0, 1})}}));
}

/// Two of three other members are a majority; two of four are not.
TEST(Suspicions, OneAccuserOrAMinorityIsNotEnough) {
    EXPECT_FALSE(is_confirmed(1, 1));
    EXPECT_TRUE(is_confirmed(2, 2));
    EXPECT_TRUE(is_confirmed(2, 3));
    EXPECT_FALSE(is_confirmed(2, 4));
    EXPECT_TRUE(is_confirmed(3, 4));
}

TEST(Suspicions, OfSeveralThatMostCannotReachTheLastIsTheWorst) {
    EXPECT_EQ(worst({{unit_at(0), members_of({1, 2})}, {unit_at(1), members_of({0})}}), unit_at(0));
    EXPECT_EQ(worst({{unit_at(0), members_of({1})}, {unit_at(1), members_of({0})}}), unit_at(1));
}

}  // namespace

}  // namespace daqloom::protocol

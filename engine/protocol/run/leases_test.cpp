#include "protocol/run/leases.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;

RunPlan plan(std::uint32_t units = 3) {
    return {.units = units,
            .heartbeat = milliseconds(200),
            .fault_timeout = seconds(1),
            .leased_meps = 100};
}

/// An epoch from MEP 1000 on with units 0 to 2, whose connections are numbered 10 to 12.
Leases begun() {
    Leases leases(plan());
    leases.begin(seconds(1), 1, 1000, {{unit_at(0), {10}}, {unit_at(1), {11}}, {unit_at(2), {12}}});
    return leases;
}

TEST(Leases, AtFirstNoMoreThanTheFewestAreLeased) {
    const Leases leases = begun();
    EXPECT_EQ(leases.next_mep(), 1000U);
    EXPECT_EQ(leases.mep_end(unit_at(2)), 1100U);
}

/// At 2000 MEPs per second, ten seconds of grace add 20000 MEPs. Twice a lease is reserved.
TEST(Leases, WithAGraceALeaseHasRoomForItAndTheNextOneIsReserved) {
    RunPlan patient = plan();
    patient.control_grace = seconds(10);
    Leases leases(patient);
    leases.begin(seconds(1), 1, 1000, {{unit_at(0), {10}}});
    EXPECT_EQ(leases.reserved_end(), 1000U + 2 * 100);
    leases.answered(3000);
    const std::uint64_t lease = 100 + 8000 + 20'000;
    EXPECT_EQ(leases.renew(seconds(2), unit_at(0)), 3000 + lease);
    EXPECT_EQ(leases.reserved_end(), 3000 + 2 * lease);
    leases.answered(5000);
    EXPECT_EQ(leases.renew(seconds(3), unit_at(0)), 5000 + lease);
    EXPECT_EQ(leases.reserved_end(), 3000 + 2 * lease) << "the reserve holds for more renewals";
}

/// Unit 1 has died in the gap. All that was reserved may have been answered, unless a unit reports.
TEST(Leases, ARunControlThatReplacesAnotherOneTakesTheWholeReserveAsLeased) {
    RunPlan patient = plan(2);
    patient.control_grace = seconds(10);
    Leases former(patient);
    former.begin(seconds(1), 3, 1000, {{unit_at(0), {10}}, {unit_at(1), {11}}});
    RunSnapshot snapshot{.units = {2, UnitSnapshot()}};
    former.write(snapshot);
    Leases leases(patient);
    leases.resume(snapshot);
    EXPECT_EQ(leases.next_mep(), 1000U);
    EXPECT_EQ(leases.first_free(), former.reserved_end());
    leases.prepared(unit_at(0), 77);
    EXPECT_EQ(leases.first_free(), former.reserved_end()) << "another process of the unit";
    leases.rejoined(unit_at(0), 4, 2, 77);
    leases.prepared(unit_at(0), 77);
    EXPECT_EQ(leases.first_free(), former.reserved_end()) << "it was not in that epoch";
    Leases unstarted = leases;
    leases.rejoined(unit_at(0), 4, 3, 78);
    leases.prepared(unit_at(0), 78);
    EXPECT_EQ(leases.first_free(), 1000U);
    unstarted.rejoined(unit_at(0), 3, 2, 78);
    unstarted.prepared(unit_at(0), 78);
    EXPECT_EQ(unstarted.first_free(), 1000U) << "its order to start was lost";
}

/// At 2000 MEPs per second, four fault timeouts of a second add 8000 MEPs to the lease.
TEST(Leases, ALeaseIsAsLongAsTheRunIsFast) {
    Leases leases = begun();
    leases.answered(3000);
    EXPECT_EQ(leases.renew(seconds(2), unit_at(0)), 3000U + 100 + 8000);
    EXPECT_EQ(leases.mep_end(unit_at(1)), 1100U) << "it has not reported";
}

/// The pace is measured in each heartbeat interval, and falls by half at most.
TEST(Leases, ARunThatStandsStillForAMomentKeepsHalfItsPace) {
    Leases leases = begun();
    leases.answered(3000);
    leases.renew(seconds(2), unit_at(0));
    EXPECT_EQ(leases.renew(seconds(2) + milliseconds(100), unit_at(1)), 3000U + 100 + 8000);
    EXPECT_EQ(leases.renew(seconds(2) + milliseconds(200), unit_at(2)), 3000U + 100 + 4000);
    EXPECT_EQ(leases.renew(seconds(2) + milliseconds(200), unit_at(0)), 3000U + 100 + 8000)
        << "what was leased is not taken back";
}

/// A run control that stands still for 3 s at 2000 MEPs per second then receives the reports of
/// 6400 MEPs within 0.2 s. The pace rises by 0.2 s / 1 s of the difference: 1000 + 0.2 × 31000 per
/// second.
TEST(Leases, ReportsThatComeAtOnceAfterAStallAreNoPace) {
    Leases leases = begun();
    leases.answered(3000);
    leases.renew(seconds(2), unit_at(0));
    leases.renew(seconds(5), unit_at(0));
    leases.answered(9400);
    EXPECT_EQ(leases.renew(seconds(5) + milliseconds(200), unit_at(0)), 9400U + 100 + 4 * 7200);
}

/// Units have built 50000 MEPs since the snapshot, and then build 2000 per second.
TEST(Leases, MepsOfAGapBetweenRunControlsAreNoPace) {
    RunSnapshot snapshot{.units = {3, UnitSnapshot()}};
    begun().write(snapshot);
    Leases leases(plan());
    leases.resume(snapshot);
    leases.answered(51'000);
    EXPECT_EQ(leases.renew(seconds(9), unit_at(0)), 51'000U + 100);
    leases.answered(53'000);
    EXPECT_EQ(leases.renew(seconds(10), unit_at(0)), 53'000U + 100 + 8000);
}

TEST(Leases, UnitsOfUnknownProgressKeepTheirLeases) {
    Leases leases = begun();
    leases.answered(3000);
    leases.renew(seconds(2), unit_at(1));
    EXPECT_EQ(leases.first_free(), 11100U);
    leases.read(unit_at(1));
    EXPECT_EQ(leases.first_free(), 3000U) << "of the others' leases nothing is left";
}

TEST(Leases, AReadoutUnitThatReportedSettlesThisForAll) {
    Leases leases = begun();
    EXPECT_EQ(leases.first_free(), 1100U);
    leases.prepared(unit_at(0), 77);  // another process than that of the epoch
    EXPECT_EQ(leases.first_free(), 1100U);
    leases.prepared(unit_at(0), 10);
    EXPECT_EQ(leases.first_free(), 1000U);
}

TEST(Leases, LastWordsSettleTheEpochOfWhichTheyAre) {
    Leases leases = begun();
    leases.last_words(unit_at(0), 0);
    EXPECT_EQ(leases.first_free(), 1100U);
    leases.last_words(unit_at(0), 1);
    EXPECT_EQ(leases.first_free(), 1000U);
}

TEST(Leases, AUnitLeftOutOrWithoutReadoutDoesNotSettleLeasesOfOthers) {
    Leases leases = begun();
    leases.left_out(members_of({1, 2}));
    leases.prepared(unit_at(0), 10);
    EXPECT_EQ(leases.first_free(), 1100U);

    Leases others(plan());
    others.begin(seconds(1), 1, 1000,
                 {{unit_at(0), {.session = 10, .reads = false}}, {unit_at(1), {.session = 11}}});
    others.prepared(unit_at(0), 10);
    EXPECT_EQ(others.first_free(), 1100U);
    others.prepared(unit_at(1), 11);
    EXPECT_EQ(others.first_free(), 1000U);
}

/// MEP numbers stay in the range that messages can carry, whatever a unit reports.
TEST(Leases, NoNumberIsBeyondTheLast) {
    Leases leases = begun();
    leases.answered(std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(leases.next_mep(), Leases::last_mep);
    EXPECT_EQ(leases.renew(seconds(2), unit_at(0)), Leases::last_mep);
    EXPECT_EQ(leases.first_free(), Leases::last_mep);
}

}  // namespace

}  // namespace daqloom::protocol

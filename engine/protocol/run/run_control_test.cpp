// Faults of units, and the expected reaction of the run control.
#include "protocol/run/run_control.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::milliseconds;
using base::seconds;
using reports::Refusal;

UnitsByHand running(const RunPlan& plan) {
    UnitsByHand run(plan);
    run.want(RunGoal::running);
    EXPECT_TRUE(run.pass_to(RunPhase::running)) << ::testing::PrintToString(run.log());
    EXPECT_EQ(run.control.members().size(), plan.units);
    run.pass(seconds(2));
    return run;
}

TEST(RunControl, ASilentUnitIsLostAfterTheTimeoutAndNotBefore) {
    UnitsByHand run = running({.units = 4, .fault_timeout = seconds(1), .restart = false});
    run.units[1].is_silent = true;  // it has just reported
    EXPECT_FALSE(run.pass(seconds(1), [&] { return !run.control.members().contains(unit_at(1)); }));
    EXPECT_TRUE(run.runs_with(members_of({0, 2, 3}), milliseconds(200)));
    EXPECT_EQ(run.control.unit(unit_at(1)).reason, "silent for 1.1 s");
    EXPECT_EQ(run.log_entries("halting: unit 1 is lost"), 1U);
    EXPECT_EQ(run.control.counts().units_lost, 1U);
    EXPECT_EQ(run.control.counts().regroupings, 1U);
}

TEST(RunControl, AUnitWhoseDataThreadIsStuckIsLostThoughItReports) {
    UnitsByHand run = running({.units = 3, .restart = false});
    run.units[2].is_stuck = true;
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(2)));
    EXPECT_EQ(run.control.unit(unit_at(2)).reason, "its data thread is stuck");
}

TEST(RunControl, AUnitWhoseProcessEndsIsLostAtOnceAndStartedAgain) {
    UnitsByHand run = running({.units = 3});
    run.kill(1);
    EXPECT_EQ(run.control.members(), members_of({0, 2}));
    EXPECT_EQ(run.control.unit(unit_at(1)).reason, "its process ended: SIGKILL");
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(2)));
}

TEST(RunControl, AUnitThatReportsAnErrorIsLost) {
    UnitsByHand run = running({.units = 3, .restart = false});
    reports::Heartbeat heartbeat{.number = 1000, .pulse = {.epoch = 1, .state = UnitState::error}};
    heartbeat.pulse.failure = "1 stream has invalid descriptors";
    run.control.reported(run.now, unit_at(1), run.units[1].session, heartbeat);
    EXPECT_EQ(run.control.members(), members_of({0, 2}));
    EXPECT_EQ(run.control.unit(unit_at(1)).reason, "1 stream has invalid descriptors");
    EXPECT_EQ(run.control.unit(unit_at(1)).state, UnitState::error);
}

TEST(RunControl, AnOrderThatFailsOrIsNotAnsweredCostsTheUnitItsPlace) {
    UnitsByHand run({.units = 3, .order_timeout = seconds(3), .restart = false});
    run.units[0].fails = "prepare";
    run.want(RunGoal::running);
    EXPECT_TRUE(run.runs_with(members_of({1, 2}), seconds(1)));
    EXPECT_EQ(run.control.unit(unit_at(0)).reason, "prepare failed: no memory");
    run.units[1].is_silent = true;
    run.control.want(run.now, RunGoal::ready);
    EXPECT_TRUE(run.pass_to(RunPhase::ready, seconds(5)));
    EXPECT_EQ(run.control.members(), members_of({2}));
}

/// The unit still reports, but does not answer its halt for 2 timeouts and 2 heartbeats.
TEST(RunControl, AMemberThatDoesNotHaltIsLostAndItsProcessEnds) {
    UnitsByHand run = running({.units = 2, .fault_timeout = seconds(1)});
    const std::uint64_t session = run.units[1].session;
    run.units[1].is_silent = true;
    run.want(RunGoal::ready);
    const base::Time begin = run.now;
    while (run.control.phase() == RunPhase::halting && run.now - begin < seconds(5)) {
        run.pass(run.control.plan().heartbeat);
        if (run.units[1].session == session) {
            run.report(1);
        }
    }
    EXPECT_EQ(run.log_entries("unit 1 is lost: no answer to halt"), 1U);
    EXPECT_GE(run.now - begin, milliseconds(2400));
    EXPECT_LE(run.now - begin, milliseconds(2600));
}

TEST(RunControl, AnUnreachableUnitIsLostAndNotItsAccusers) {
    UnitsByHand run = running({.units = 4, .restart = false});
    for (const std::uint32_t unit : {0U, 2U, 3U}) {
        run.units[unit].suspects = {unit_at(1)};
        run.units[1].suspects.insert(unit_at(unit));
    }
    EXPECT_TRUE(run.pass(seconds(2), [&] { return run.control.members().size() < 4; }));
    EXPECT_EQ(run.control.members(), members_of({0, 2, 3}));
    EXPECT_EQ(run.control.unit(unit_at(1)).reason,
              "unreachable according to unit 0 and unit 2 and unit 3");
}

TEST(RunControl, ACutConnectionIsMadeAnewBeforeItCostsAUnit) {
    UnitsByHand run = running({.units = 3, .restart = false});
    run.units[0].suspects = {unit_at(2)};
    EXPECT_TRUE(run.pass(seconds(2), [&] {
        return run.log_entries("halting: a connection is cut, between 0 and 2") == 1;
    }));
    run.units[0].suspects.clear();
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(2)));
    EXPECT_EQ(run.control.counts().units_lost, 0U);
    run.units[0].suspects = {unit_at(2)};
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(3)));
    EXPECT_EQ(run.control.unit(unit_at(2)).reason,
              "a connection is cut, between 0 and 2, and new connections did not help");
}

TEST(RunControl, ASuspicionThatPassesHasNoConsequence) {
    UnitsByHand run = running({.units = 3});
    run.units[0].suspects = {unit_at(2)};
    run.pass(milliseconds(400));
    run.units[0].suspects.clear();
    run.pass(seconds(5));
    EXPECT_EQ(run.control.epoch(), 1U);
}

TEST(RunControl, ThreeRegroupingsInARowWithoutAnyMepAreAnError) {
    UnitsByHand run = running({.units = 3});
    for (UnitsByHand::Unit& unit : run.units) {
        unit.is_idle = true;
    }
    EXPECT_TRUE(run.pass_to(RunPhase::error, seconds(60)));
    EXPECT_EQ(run.control.failure(),
              "event building has stalled, and regrouping 3 times did not help");
    // Only the first epoch built events; each of the later ones counts as fruitless.
    EXPECT_EQ(run.log_entries("halting: event building has stalled"), 3U);
    EXPECT_EQ(run.control.epoch(), 4U);
    EXPECT_EQ(run.control.counts().units_lost, 0U);
}

TEST(RunControl, AUnitThatBuildsInBetweenMayStopAnyNumberOfTimes) {
    UnitsByHand run = running({.units = 2});
    for (int time = 0; time < 6; ++time) {
        run.units[0].is_idle = true;
        EXPECT_TRUE(run.pass(seconds(3), [&] { return run.control.epoch() == 2U + time; }));
        run.units[0].is_idle = false;
        EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(1)));
        run.pass(milliseconds(600));
    }
    EXPECT_NE(run.control.phase(), RunPhase::error);
}

TEST(RunControl, AUnitThatWaitsForItsSourceDoesNotCountAsStopped) {
    UnitsByHand run = running({.units = 2});
    run.units[0].is_idle = run.units[0].waits = true;
    run.pass(seconds(30));
    EXPECT_EQ(run.control.epoch(), 1U);
}

/// Pauses of 1 s, 2 s, 4 s … 60 s, beginning with one timeout.
TEST(RunControl, APauseBeforeARestartDoublesUpToAMinute) {
    UnitsByHand run = running({.units = 2, .fault_timeout = seconds(1)});
    std::vector<std::int64_t> pauses_s;
    for (int time = 0; time < 9; ++time) {
        const base::Time begin = run.now;
        const std::size_t before = run.launched.size();
        run.kill(1);
        EXPECT_TRUE(run.pass(seconds(100), [&] { return run.launched.size() > before; }));
        pauses_s.push_back((run.now - begin).ps / seconds(1).ps);
        run.pass(milliseconds(500));
    }
    EXPECT_EQ(pauses_s, (std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
}

TEST(RunControl, AMinuteAsAMemberMakesEarlierFailuresForgotten) {
    UnitsByHand run = running({.units = 2, .fault_timeout = seconds(1)});
    for (int time = 0; time < 3; ++time) {
        run.kill(1);
        EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(10)));
    }
    run.pass(seconds(61));
    run.kill(1);
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), milliseconds(1200)));
}

TEST(RunControl, WithoutRestartALostUnitWaitsForTheOperator) {
    UnitsByHand run = running({.units = 3, .restart = false});
    run.kill(1);
    run.units[2].is_silent = true;
    EXPECT_TRUE(run.runs_with(members_of({0}), seconds(2)));
    run.go_on(2);
    run.pass(seconds(60));
    EXPECT_EQ(run.control.members(), members_of({0}));
    run.reset(1);
    run.reset(2);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(2)));
}

TEST(RunControl, AUnitThatDoesNotAnswerAResetIsReplaced) {
    UnitsByHand run = running({.units = 3, .restart = false});
    run.units[1].is_silent = true;
    EXPECT_TRUE(run.runs_with(members_of({0, 2}), seconds(2)));
    const std::uint64_t session = run.units[1].session;
    run.reset(1);
    EXPECT_EQ(run.control.unit(unit_at(1)).standing, Standing::joining);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(5)));
    EXPECT_NE(run.units[1].session, session);
}

TEST(RunControl, AUnitThatWasStoppedIsRefusedUntilItHasBeenReset) {
    UnitsByHand run = running({.units = 3});
    run.units[1].is_silent = true;
    EXPECT_TRUE(run.runs_with(members_of({0, 2}), seconds(2)));
    const reports::Heartbeat late{.number = 500,
                                  .pulse = {.epoch = 1, .state = UnitState::running}};
    EXPECT_EQ(run.control.reported(run.now, unit_at(1), run.units[1].session, late),
              Refusal::epoch);
    run.go_on(1);
    EXPECT_TRUE(run.runs_with(members_of({0, 1, 2}), seconds(4)));
}

TEST(RunControl, StrangeReportsAreRefusedAndChangeNothing) {
    UnitsByHand run = running({.units = 2});
    const std::uint64_t session = run.units[0].session;
    const auto refused = [&](std::uint64_t by, const reports::Report& report) {
        return run.control.reported(run.now, unit_at(0), by, report);
    };
    const auto of_epoch = [](std::uint32_t epoch) {
        return reports::Heartbeat{.number = 1000,
                                  .pulse = {.epoch = epoch, .state = UnitState::running}};
    };
    EXPECT_EQ(refused(session + 99, of_epoch(1)), Refusal::session);
    EXPECT_EQ(refused(session, of_epoch(77)), Refusal::epoch);
    EXPECT_EQ(refused(session, of_epoch(0)), Refusal::epoch);
    EXPECT_EQ(refused(session, reports::Answer{.order = 1'000'000}), Refusal::unasked);
    EXPECT_EQ(refused(session, reports::Answer{.order = 1}), std::nullopt) << "replaced long since";
    EXPECT_EQ(refused(session, of_epoch(1)), std::nullopt);
    EXPECT_EQ(run.control.phase(), RunPhase::running);
    EXPECT_EQ(run.control.members(), members_of({0, 1}));
    EXPECT_FALSE(run.control.is_free(unit_at(0)));
}

TEST(RunControl, ARunControlThatWasStoppedItselfLosesNoUnit) {
    UnitsByHand run = running({.units = 3});
    run.now += seconds(30);
    run.control.tick(run.now);
    EXPECT_EQ(run.control.members(), members_of({0, 1, 2}));
    run.pass(seconds(5));
    EXPECT_EQ(run.control.epoch(), 1U);
}

TEST(RunControl, AUnitThatCannotBeConfiguredOrStartedIsAnErrorOfTheRun) {
    UnitsByHand run({.units = 2, .launches = false});
    run.units[1].fails = "configure";
    run.join(0);
    run.join(1);
    EXPECT_EQ(run.control.phase(), RunPhase::error);
    EXPECT_EQ(run.control.failure(), "unit 1 cannot be configured: no memory");

    UnitsByHand other({.units = 2});
    other.kill(0);
    EXPECT_EQ(other.control.failure(), "unit 0 could not start: its process ended (SIGKILL)");
}

TEST(RunControl, AProcessThatDoesNotJoinInTimeIsKilled) {
    RunControl control({.units = 1, .launch_timeout = seconds(20)});
    control.launch(base::Time::zero());
    control.want(base::Time::zero(), RunGoal::running);
    EXPECT_TRUE(std::holds_alternative<LaunchProcess>(control.take().at(0)));
    std::vector<RunOutput> out;
    for (base::Time now = milliseconds(100); now <= seconds(20); now += milliseconds(100)) {
        EXPECT_TRUE(out.empty());
        control.tick(now);
        out = control.take();
    }
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<KillProcess>(out[0]));
}

TEST(RunControl, EachReportOfAMemberRenewsItsLease) {
    UnitsByHand run = running({.units = 2, .heartbeat = milliseconds(200), .leased_meps = 100});
    run.orders.clear();
    run.pass(milliseconds(200));
    ASSERT_EQ(run.orders.size(), 2U);
    for (const SendOrder& order : run.orders) {
        const auto& renew = std::get<orders::Renew>(order.order);
        EXPECT_EQ(order.number, 0U);
        EXPECT_EQ(renew.epoch, 1U);
        EXPECT_EQ(renew.last_report, run.units[order.unit.value()].reports);
        // At one MEP per millisecond, four timeouts of a second add 4000 MEPs.
        EXPECT_EQ(renew.mep_end, run.built + 100 + 4000);
    }
}

/// All processes have ended, so which of the leased MEPs they answered is unknown.
TEST(RunControl, LeasedMepsOfUnitsWithoutReportAreSkipped) {
    UnitsByHand run = running({.units = 2, .leased_meps = 100});
    const std::uint64_t known = run.control.next_mep();
    run.control.exited(run.now, unit_at(0), "lost");
    run.control.exited(run.now, unit_at(1), "lost");
    run.units[0] = run.units[1] = {};
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(5)));
    EXPECT_EQ(run.control.first_mep(), known + 100 + 4000);
    EXPECT_EQ(
        run.log_entries("MEPs " + std::to_string(known) + " to " + std::to_string(known + 4099) +
                        " are skipped: units of unknown progress may have answered them"),
        1U);
}

TEST(RunControl, MepsCountedUpToTheEndOfAProcessAreNotSkipped) {
    UnitsByHand run = running({.units = 2, .leased_meps = 100});
    const std::uint64_t known = run.control.next_mep();
    for (const std::uint32_t unit : {0U, 1U}) {
        const auto counted = static_cast<std::int64_t>(known + 7 + unit);
        run.control.counted(unit_at(unit), {{{counter_names::next_mep, counted}}});
    }
    run.control.exited(run.now, unit_at(0), "lost");
    run.control.exited(run.now, unit_at(1), "lost");
    run.units[0] = run.units[1] = {};
    EXPECT_TRUE(run.runs_with(members_of({0, 1}), seconds(5)));
    EXPECT_EQ(run.control.first_mep(), known + 8);
}

TEST(RunControl, AUnitThatCannotWriteStopsTheRunOncePerGoal) {
    UnitsByHand run = running({.units = 2, .stops_when_unwritable = true});
    const auto full = [&](std::int64_t lost) {
        const reports::Heartbeat heartbeat{
            .number = 1000,
            .pulse = {.epoch = run.control.epoch(), .state = UnitState::running},
            .counters = {{{counter_names::meps_not_written, lost}, {"not_written.ENOSPC", lost}}}};
        run.control.reported(run.now, unit_at(1), run.units[1].session, heartbeat);
    };
    full(0);
    EXPECT_EQ(run.control.goal(), RunGoal::running);
    full(1);
    full(2);
    EXPECT_EQ(run.control.goal(), RunGoal::ready);
    EXPECT_EQ(
        run.log_entries("unit 1 cannot write what it builds: No space left on device; the run "
                        "stops"),
        1U);
}

/// MEPs 0 to 9 of two units in turn: one unit has built 5, the other has granted 3 and built 2.
TEST(RunControl, TheBalanceComparesCountsOfUnitsWithTheirShares) {
    UnitsByHand run({.units = 2});
    run.want(RunGoal::running);
    const auto count = [&](std::uint32_t unit, std::int64_t built, std::int64_t granted) {
        run.control.counted(unit_at(unit), {{{counter_names::meps_built, built},
                                             {counter_names::meps_granted, granted},
                                             {counter_names::next_mep, 10}}});
    };
    count(0, 5, 5);
    count(1, 2, 3);
    EXPECT_EQ(run.control.balance(), Balance({.unfinished = 1, .skipped = 2}));
}

TEST(RunControl, TheLogKeepsItsFirstEntriesAndCountsAll) {
    RunControl control({.units = 1});
    for (std::size_t entry = 0; entry < RunLog::most_events + 5; ++entry) {
        control.want(base::Time::zero(), RunGoal::idle);
    }
    EXPECT_EQ(control.events().size(), RunLog::most_events);
    EXPECT_EQ(control.counts().run_events, RunLog::most_events + 5);
}

TEST(RunControl, AnEntryOfTheLogHasASubject) {
    UnitsByHand run = running({.units = 2, .restart = false, .fewest_members = 2});
    run.kill(1);
    std::vector<std::string> troubles;
    for (const RunEvent& event : run.control.events()) {
        if (event.about != About::course) {
            troubles.push_back(std::string(name_of(event.about)) + ": " + event.text);
        }
    }
    ASSERT_EQ(troubles.size(), 2U);
    EXPECT_EQ(troubles[0], "unit: unit 1 is lost: its connection ended");
    EXPECT_EQ(troubles[1], "failure: error: " + run.control.failure());
}

}  // namespace

}  // namespace daqloom::protocol

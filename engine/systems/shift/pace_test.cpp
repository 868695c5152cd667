// Known answers of linear shifting paced by builder units, and of barriers of groups.
#include <gtest/gtest.h>

#include <vector>

#include "systems/fabric_parts_test.hpp"
#include "systems/ring/node_ring.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

using protocol::Pace;
using protocol::ReadoutIndex;
using protocol::WriteOrder;

ShiftSystemConfig paced(std::uint32_t units) {
    ShiftSystemConfig config = barrier_system(ShiftBarrier::none, units);
    config.pace = Pace::builder;
    return config;
}

/// Linear shifting with random delays of units, and sources that acknowledge at once.
ShiftSystemConfig late(std::uint32_t units, Time mean = base::microseconds(3)) {
    ShiftSystemConfig config = paced(units);
    config.source_acknowledge.mean = Time::zero();
    config.phase_jitter = exponential(mean);
    return config;
}

/// Builder units are idle when units in step request to write. A step takes a request of 16 + 6 · 8
/// B, its answer of 16 + 8 B, and the transfer.
TEST(BuilderPace, OfUnitsInStepCostsARoundTripOfMessages) {
    const ShiftSystemConfig config = paced(8);
    const auto system = play(config, base::milliseconds(2));
    const Steps steps(*system);
    const Way way{fabric_of(config)};
    const auto message = [&](base::Bytes bytes) {
        return config.message_cost * 2 + way.of_wire(bytes + 26 + 16 + 4) + config.polling_delay;
    };
    const Time paper = transfer(config) + message(16 + 6 * 8) + message(16 + 8);
    for (std::uint64_t step = 9; step < 15; ++step) {
        const Time period = steps.begun(step + 1) - steps.begun(step);
        EXPECT_GE(period.ps, paper.ps) << step;
        // A message may wait for completions of other units' writes.
        EXPECT_LE(period.ps, (paper + updates() * 3 + config.message_cost * 2).ps) << step;
    }
    EXPECT_EQ(system->report().answered_ahead, 0U);
}

/// Largest number of readout units that write to one builder unit at a time, from the second round
/// on.
std::int64_t most_writers(const ShiftSystem& system, std::uint32_t units) {
    std::map<std::uint32_t, std::vector<std::pair<Time, int>>> changes;  // by builder unit
    std::map<ReadoutIndex, std::uint32_t> writes_to;
    for (const auto& each : system.stages()) {
        if (const auto before = writes_to.find(each.unit); before != writes_to.end()) {
            changes[before->second].emplace_back(each.begin, -1);
            writes_to.erase(before);
        }
        if (each.stage == ShiftStage::sending && each.step >= units) {
            const auto builder =
                static_cast<std::uint32_t>((each.unit.value() + each.step) % units);
            writes_to[each.unit] = builder;
            changes[builder].emplace_back(each.begin, 1);
        }
    }
    std::int64_t most = 0;
    for (auto& [builder, all] : changes) {
        std::ranges::sort(all);
        std::int64_t now = 0;
        for (const auto& [at, change] : all) {
            now += change;
            most = std::max(most, now);
        }
    }
    return most;
}

TEST(BuilderPace, LetsSoManyWriteAtATime) {
    for (const std::uint32_t writers : {1U, 2U, 3U}) {
        ShiftSystemConfig config = late(12);
        config.writers = writers;
        const auto system = play(config, base::milliseconds(3));
        const std::int64_t most = most_writers(*system, 12);
        // A single writer is followed by the next one ahead of time, because a unit learns of the
        // end of its write after its builder unit.
        EXPECT_LE(most, writers + 1) << writers;
        EXPECT_GE(most, writers) << writers;
        const ShiftReport report = system->report();
        EXPECT_EQ(report.unexpected, 0U);
        EXPECT_EQ(report.answered_ahead > 0, writers == 1);
        EXPECT_GT(report.asking, Time::zero());
        EXPECT_TRUE(std::ranges::none_of(system->stages(), [](const auto& each) {
            return each.stage == ShiftStage::asking && each.step % 12 == 0;
        })) << "nobody asks its own node";
    }
}

/// Share of the full rate that linear shifting on a star reaches with random delays.
double share_of(const ShiftSystemConfig& config, Time until) {
    const auto system = play(config, until);
    return static_cast<double>(system->report().bytes_written) /
           static_cast<double>(config.slots.size()) * static_cast<double>(kByte) /
           static_cast<double>((until - config.warmup).ps);
}

/// With unfolded units, MFPs of 2 MB and fast messages, a star behaves like nodes on a ring. In
/// each step, a unit that need not wait for others takes an additional round trip of messages and
/// the latencies of its write; a unit that waits does not. The share lies between those of the ring
/// with and without these times.
TEST(BuilderPace, OnAStarReachesTheShareOfNodesOnARing) {
    constexpr std::uint32_t kUnits = 12;
    constexpr base::Bytes kBytes = 2 << 20;
    constexpr double kPayload = 4096.0 / (4096 + 26);
    ShiftSystemConfig config = unfolded_on(star_200(2 * kUnits, base::nanoseconds(100)));
    fabric_of(config).crossbar_speedup = 2;
    config.barrier = ShiftBarrier::none;
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.mfp_bytes.assign(kUnits, kBytes);
    config.source_acknowledge.mean = Time::zero();
    config.phase_jitter = exponential(base::microseconds(8));
    config.warmup = base::milliseconds(20);
    const Time until = base::milliseconds(60);
    for (const std::uint32_t writers : {1U, 0U}) {
        NodeRingConfig ring;
        ring.work.assign(kUnits, {.mean = Time{static_cast<std::int64_t>(
                                      static_cast<double>(kBytes * kByte) / kPayload)}});
        ring.delays = {config.phase_jitter};
        ring.writers = writers;
        ring.duration = base::seconds(1);
        const double without = play_node_ring(ring)->shares.back() * kPayload;
        ring.delays.push_back({.mean = base::microseconds(4)});
        const double with = play_node_ring(ring)->shares.back() * kPayload;
        config.pace = writers == 0 ? Pace::schedule : Pace::builder;
        const double share = share_of(config, until);
        EXPECT_LE(share, without + 0.01) << writers;
        // Tolerance: a switch shares its output by packets, not by bytes.
        EXPECT_GE(share, with - (writers == 0 ? 0.04 : 0.01)) << writers;
    }
}

TEST(BuilderPace, HoldsInTheOrderOfTheScheduleAndForWindowsToo) {
    ShiftSystemConfig config = late(12);
    config.write_order = WriteOrder::schedule;
    const ShiftReport ordered = play(config, base::milliseconds(3))->report();
    EXPECT_EQ(ordered.unexpected, 0U);
    EXPECT_GT(ordered.meps_built, 12U);
    config = late(6, base::microseconds(15));
    config.change = PhaseChange::by_time;
    config.window = base::microseconds(40);
    const ShiftReport windows = play(config, base::milliseconds(5))->report();
    EXPECT_EQ(windows.unexpected, 0U);
    EXPECT_GT(windows.meps_built, 60U);
    EXPECT_GT(windows.requests, windows.mfps_written / 2);
}

// ---- barriers of groups -------------------------------------------------------------------------

/// Linear shifting with random delays and three groups of three units each.
ShiftSystemConfig in_groups(ShiftBarrier barrier, Time mean = base::microseconds(30)) {
    ShiftSystemConfig config = late(9, mean);
    config.barrier = barrier;
    config.barrier_groups = {7, 7, 7, 2, 2, 2, 5, 5, 5};
    return config;
}

/// Largest distance in steps between two units at any time.
struct Apart {
    explicit Apart(const ShiftSystem& system) {
        std::vector<std::uint64_t> step(9, 0);
        for (const auto& each : system.stages()) {
            const std::uint32_t unit = each.unit.value();
            step[unit] = each.step;
            for (std::uint32_t other = 0; other < 9; ++other) {
                const auto [less, more] = std::minmax(step[unit], step[other]);
                std::uint64_t& most = unit / 3 == other / 3 ? within : across;
                most = std::max(most, more - less);
            }
        }
    }

    std::uint64_t within = 0;  ///< between units of the same group
    std::uint64_t across = 0;  ///< between units of different groups
};

class GroupBarrier : public ::testing::TestWithParam<ShiftBarrier> {};

TEST_P(GroupBarrier, KeepsItsUnitsInStepAndWaitsForNoOthers) {
    const auto system = play(in_groups(GetParam(), base::microseconds(3)), base::milliseconds(3));
    const Apart most(*system);
    EXPECT_LE(most.within, 1U);
    EXPECT_GE(most.across, 2U);
    EXPECT_GT(system->report().barriers, 3 * 20U);
    EXPECT_EQ(system->report().unexpected, 0U);
}

/// Units that are late by more than a phase use their slack.
TEST_P(GroupBarrier, LetsItsUnitsGetAheadByItsSlack) {
    for (const std::uint32_t slack : {0U, 2U}) {
        ShiftSystemConfig config = in_groups(GetParam());
        config.pace = Pace::schedule;
        config.barrier_slack = slack;
        const auto system = play(config, base::milliseconds(6));
        const Apart most(*system);
        EXPECT_LE(most.within, 1 + slack);
        EXPECT_GE(most.within, 1 + slack / 2);
        EXPECT_GE(most.across, 2 + slack);
        const ShiftReport report = system->report();
        EXPECT_GT(report.barriers, 3 * 20U);
        EXPECT_EQ(report.unexpected, 0U);
        // Barriers that some units have not left yet are not in the sum.
        const Time parts = report.waiting_for_slowest + report.releasing;
        EXPECT_LE(parts, report.in_barrier);
        EXPECT_GE(parts.seconds(), 0.95 * report.in_barrier.seconds());
    }
}

/// Slack absorbs short delays: the units that wait for a late one are ahead.
TEST(BarrierSlack, AbsorbsTheDelaysOfUnits) {
    const auto written = [](ShiftBarrier barrier, std::uint32_t slack) {
        ShiftSystemConfig config = late(9);
        config.barrier = barrier;
        config.barrier_slack = slack;
        return static_cast<double>(play(config, base::milliseconds(10))->report().bytes_written);
    };
    const double none = written(ShiftBarrier::none, 0);
    const double strict = written(ShiftBarrier::external, 0);
    const double loose = written(ShiftBarrier::external, 4);
    EXPECT_LT(strict, 0.95 * none);
    EXPECT_GT(loose, 0.97 * none);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GroupBarrier,
                         ::testing::Values(ShiftBarrier::centralised, ShiftBarrier::tournament,
                                           ShiftBarrier::dissemination, ShiftBarrier::external));

/// Pacing builder units keep neighbours in order; the last unit of a group waits for the first.
TEST(NeighbourBarrier, TheLastOfAGroupIsNeverAheadOfTheFirst) {
    for (const Pace pace : {Pace::builder, Pace::schedule}) {
        ShiftSystemConfig config = in_groups(ShiftBarrier::neighbour);
        config.pace = pace;
        const auto system = play(config, base::milliseconds(6));
        std::vector<std::uint64_t> step(9, 0);
        std::uint64_t most = 0;
        for (const auto& each : system->stages()) {
            const std::uint32_t unit = each.unit.value();
            step[unit] = each.step;
            for (std::uint32_t first = 0; first < 9; first += 3) {
                // Without pacing, the first unit may wait at the end of its own step.
                ASSERT_LE(step[first + 2], step[first] + (pace == Pace::builder ? 0 : 1));
                most = std::max(most, std::ranges::max(step) - std::ranges::min(step));
            }
        }
        EXPECT_GE(most, 2U) << "groups do not wait for each other";
        EXPECT_GT(system->report().in_barrier, Time::zero());
        EXPECT_EQ(system->report().barriers, 0U) << "there is nothing that all enter";
        EXPECT_EQ(system->report().unexpected, 0U);
    }
}

TEST(GroupBarrier, OfOneGroupIsTheBarrierOfAll) {
    ShiftSystemConfig config = paced(6);
    config.pace = Pace::schedule;
    config.barrier = ShiftBarrier::tournament;
    const auto all = play(config, base::milliseconds(2));
    config.barrier_groups.assign(6, 3);
    const auto group = play(config, base::milliseconds(2));
    EXPECT_EQ(all->report().bytes_written, group->report().bytes_written);
    EXPECT_EQ(all->report().in_barrier, group->report().in_barrier);
    EXPECT_EQ(all->report().barriers, group->report().barriers);
    config.barrier_groups = {0, 1};
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "linear shift: barrier groups of 2 readout units; the schedule has 6");
}

}  // namespace
}  // namespace daqloom::systems

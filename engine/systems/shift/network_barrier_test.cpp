// Barriers that the switches of the network combine: the times of release, groups, lost units.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/failure_test.hpp"
#include "systems/shift/run_control_test.hpp"

namespace daqloom::systems {
namespace {

using protocol::ReadoutIndex;

/// A barrier of a group: its last entry, and the first release of a unit.
struct Barrier {
    Time last = Time::zero();
    Time first_release = Time::never();
};

/// Barriers after each step, by step and group; a unit enters the next step when it is released.
std::map<std::pair<std::uint64_t, std::uint32_t>, Barrier> barriers(
    const ShiftSystem& system, const std::vector<std::uint32_t>& group) {
    std::map<std::pair<std::uint64_t, std::uint32_t>, Barrier> found;
    for (const auto& record : system.stages()) {
        const std::uint32_t of = group[record.unit.value()];
        if (record.stage == ShiftStage::in_barrier) {
            Time& last = found[{record.step, of}].last;
            last = std::max(last, record.begin);
        } else if (record.stage == ShiftStage::entering && record.step > 0) {
            Time& first = found[{record.step - 1, of}].first_release;
            first = std::min(first, record.begin);
        }
    }
    return found;
}

/// Units arrive at random times. The release takes as long as the tree of their group is high.
TEST(NetworkBarrier, ReleasesNoUnitBeforeTheLastOfItsGroupHasArrived) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        ShiftSystemConfig config = barrier_system(ShiftBarrier::network, 12);
        config.seed = seed;
        config.phase_jitter = exponential(base::microseconds(20));
        config.barrier_groups = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
        config.barrier_levels = {1, 1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3};
        const auto system = play(config, base::milliseconds(5));
        std::size_t exact = 0;
        const auto found = barriers(*system, config.barrier_groups);
        ASSERT_GT(found.size(), 40U);
        for (const auto& [where, barrier] : found) {
            if (barrier.first_release != Time::never()) {
                const Time least = network_barrier(config, where.second == 0 ? 1 : 3);
                EXPECT_GE(barrier.first_release, barrier.last + least);
                exact += barrier.first_release == barrier.last + least ? 1 : 0;
            }
        }
        EXPECT_GT(exact, found.size() / 2) << "the processors are idle at most barriers";
    }
}

TEST(NetworkBarrier, WaitsForTheLatencyOfTheLastAdapter) {
    ShiftSystemConfig config = barrier_system(ShiftBarrier::network, 8);
    config.latency.mean = base::microseconds(2);
    const auto found =
        barriers(*play(config, base::milliseconds(5)), std::vector<std::uint32_t>(8));
    const Barrier& settled = found.at({12, 0});
    EXPECT_EQ(settled.first_release - settled.last, network_barrier(config) + config.latency.mean);
}

TEST(NetworkBarrier, WithALostUnitTheOthersRegroup) {
    ShiftSystemConfig config = controlled();
    config.barrier = ShiftBarrier::network;
    config.barrier_level_latency = base::nanoseconds(400);
    config.barrier_levels.assign(4, 1);
    config.node_changes = {stop(3, microseconds(1000), base::Time::never())};
    const auto system = play(config, base::milliseconds(3));
    ASSERT_EQ(lost_by(*system).size(), 1U);
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
    const std::uint64_t before = system->report().meps_incomplete;
    system->run(base::milliseconds(4));
    EXPECT_GT(system->report().meps_incomplete, before) << "three units go on in step";
    EXPECT_TRUE(system->check_conservation());
}

TEST(NetworkBarrier, NeedsTheTreeOfEachUnit) {
    ShiftSystemConfig config = barrier_system(ShiftBarrier::network, 4);
    config.barrier_levels.pop_back();
    EXPECT_TRUE(
        base::fails_with("a barrier of the network with 3 trees", ShiftSystem::make(config)));
}

}  // namespace
}  // namespace daqloom::systems

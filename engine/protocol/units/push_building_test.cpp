// The machines of push event building in one system, in virtual time.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "base/byte_source_test.hpp"
#include "protocol/units/push_building_check_test.hpp"

namespace daqloom::protocol {
namespace {

TEST(PushBuilding, KeepsItsPromisesUnderRandomSizesAndDelays) {
    std::map<PhaseChange, std::uint64_t> built;
    std::map<ShiftBarrier, std::uint64_t> built_with;
    std::map<bool, std::uint64_t> incomplete;  // by whether nodes have units of both kinds
    std::map<Pace, std::uint64_t> built_at;
    PushBuildingCheck::Summary all;
    for (std::uint64_t seed = 0; seed < 2'500; ++seed) {
        const auto input = base::random_bytes(seed, 100, 4'000);
        const auto run = PushBuildingCheck::play(input);
        ASSERT_EQ(run.broken_promise, "") << "seed " << seed;
        built[run.change] += run.built;
        built_at[run.pace] += run.built;
        all.withdrawn += run.withdrawn;
        built_with[run.barrier] += run.change == PhaseChange::by_count ? run.built : 0;
        all.discarded += run.discarded;
        all.blocked += run.blocked;
        all.idle_steps += run.idle_steps;
        all.passed += run.passed;
        all.lost_units += run.lost_units;
        incomplete[run.is_folded] += run.incomplete;
        all.dropped += run.dropped;
        all.unanswered += run.unanswered;
        all.lost += run.lost;
    }
    // All kinds of runs must have occurred, more than once.
    EXPECT_GT(built[PhaseChange::by_count], 1'000U);
    EXPECT_GT(built[PhaseChange::by_time], 500U);
    for (const auto& [barrier, meps] : built_with) {
        EXPECT_GT(meps, 300U);
    }
    EXPECT_EQ(built_with.size(), 6U);
    EXPECT_GT(built_at[Pace::builder], 1'000U);
    EXPECT_GT(all.withdrawn, 20U);
    EXPECT_GT(all.discarded, 300U);
    EXPECT_GT(all.blocked, 1'000U);
    EXPECT_GT(all.idle_steps, 500U);
    EXPECT_GT(all.passed, 500U);
    EXPECT_GT(all.lost_units, 500U);
    EXPECT_GT(incomplete[false], 100U);
    EXPECT_GT(incomplete[true], 50U);
    EXPECT_GT(all.dropped, 150U);
    EXPECT_GT(all.unanswered, 150U);
    EXPECT_GT(all.lost, 500U);
}

}  // namespace
}  // namespace daqloom::protocol

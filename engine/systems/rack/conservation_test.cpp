// Conservation of bytes and cells in random small racks.
#include <gtest/gtest.h>

#include "systems/rack/check_test.hpp"

namespace daqloom::systems {
namespace {

TEST(RackConservation, HoldsInAnyRackAtAnyTime) {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        const RackConfig config = any_small_rack(base::random_bytes(seed, 200, 1));
        ASSERT_EQ(broken_promise(config, static_cast<int>(seed % 4)), "") << "seed " << seed;
    }
}

/// The racks above must exercise the checks: frames are dropped, marked, lost and time out.
TEST(RackConservation, IsTriedOnRacksInWhichThingsGoWrong) {
    RackReport sum;
    std::uint64_t timeouts = 0;
    std::uint64_t waiting = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        auto rack = *Rack::make(any_small_rack(base::random_bytes(seed, 200, 1)));
        rack->run(rack->config().duration);
        const RackReport report = rack->report();
        sum.drops += report.drops;
        sum.marks += report.marks;
        sum.injected_losses += report.injected_losses;
        sum.events_built += report.events_built;
        timeouts += report.tcp.timeouts();
        waiting += report.events_waiting;
        sum.events_stored += report.events_stored;
        sum.events_unstored += report.events_unstored;
    }
    EXPECT_GT(sum.drops, 100U);
    EXPECT_GT(sum.marks, 100U);
    EXPECT_GT(sum.injected_losses, 100U);
    EXPECT_GT(sum.events_built, 100U);
    EXPECT_GT(timeouts, 20U);
    EXPECT_GT(waiting, 20U);
    EXPECT_GT(sum.events_stored, 100U);
    EXPECT_GT(sum.events_unstored, 20U);
}

}  // namespace
}  // namespace daqloom::systems

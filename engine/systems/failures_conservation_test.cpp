// Whatever fails in a small system: packets, credits and events add up.
#include <gtest/gtest.h>

#include <cstdint>

#include "base/byte_source_test.hpp"
#include "systems/failures_check_test.hpp"

namespace daqloom::systems {
namespace {

TEST(FailuresConservation, HoldsWhateverFails) {
    WentWrong sum;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        const auto bytes = base::random_bytes(seed, 300, 100);
        ASSERT_EQ(broken_promise_of_failures(bytes, sum), "") << "seed " << seed;
    }
    // A check that cannot fail proves nothing.
    EXPECT_GT(sum.cut, 1'000U);
    EXPECT_GT(sum.unreachable, 100U);
    EXPECT_GT(sum.lost, 50U);
    EXPECT_GT(sum.built, 1'000U);
}

}  // namespace
}  // namespace daqloom::systems

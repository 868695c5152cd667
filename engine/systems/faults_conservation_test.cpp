// Whatever breaks in a small system, of any protocol on any network: what is lost is counted, each
// event has one fate, and what stands still does so for a cause that is named.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/byte_source_test.hpp"
#include "systems/any_system_check_test.hpp"

namespace daqloom::systems {
namespace {

/// A check that cannot fail proves nothing: most of these systems are simulated, lose something,
/// and still do all that they have to; units are lost, and the others build on.
TEST(FaultsConservation, HoldsInAnySystemWhateverBreaks) {
    AllOutcomes all;
    for (std::uint64_t seed = 0; seed < 1'200; ++seed) {
        const auto bytes = base::random_bytes(seed, 300, 200);
        EXPECT_EQ(AnySystem(bytes, all).broken_promise(), "") << "seed " << seed;
    }
    EXPECT_LT(all.refused, 30U);
    EXPECT_GT(all.done, 500U);
    EXPECT_GT(all.lossy, 400U);
    EXPECT_GT(all.failed, 1'000U);
    EXPECT_GT(all.units_lost, 300U);
    EXPECT_GT(all.came_back, 250U);
    EXPECT_LT(all.excused, all.runs / 4);
}

}  // namespace
}  // namespace daqloom::systems

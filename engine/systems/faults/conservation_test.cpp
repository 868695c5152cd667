// Conservation in small systems with faults, of any protocol on any network: losses are counted,
// each event has one fate, and a run that stalls names the cause.
#include <gtest/gtest.h>

#include <cstdint>

#include "base/byte_source_test.hpp"
#include "systems/faults/any_system_check_test.hpp"

namespace daqloom::systems {
namespace {

/// Number of systems; lower in debug builds, where each takes several times as long.
#ifdef NDEBUG
constexpr std::uint64_t kSystems = 1'200;
#else
constexpr std::uint64_t kSystems = 300;
#endif

/// The drawn systems must exercise the checks: most are simulated, lose packets and still complete
/// their work; units are lost, and the others build on.
TEST(FaultsConservation, HoldsInAnySystemWhateverBreaks) {
    AllOutcomes all;
    for (std::uint64_t seed = 0; seed < kSystems; ++seed) {
        const auto bytes = base::random_bytes(seed, 300, 200);
        EXPECT_EQ(AnySystem(bytes, all).broken_promise(), "") << "seed " << seed;
    }
    EXPECT_LT(all.refused, kSystems / 40);
    EXPECT_GT(all.done, kSystems * 5 / 12);
    EXPECT_GT(all.lossy, kSystems / 3);
    EXPECT_GT(all.failed, kSystems * 5 / 6);
    EXPECT_GT(all.units_lost, kSystems / 4);
    EXPECT_GT(all.came_back, kSystems * 5 / 24);
    EXPECT_LT(all.excused, all.runs / 4);
}

}  // namespace
}  // namespace daqloom::systems

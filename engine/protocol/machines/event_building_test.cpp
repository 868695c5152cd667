// The event manager and builder units together: random inputs against a model.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "protocol/machines/event_building_check_test.hpp"

namespace daqloom::protocol {
namespace {

TEST(EventBuilding, KeepsItsPromisesUnderRandomInputs) {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        base::RandomStream random(seed, "inputs");
        std::vector<std::uint8_t> input(random.uniform_int(600));
        for (std::uint8_t& value : input) {
            value = static_cast<std::uint8_t>(random.uniform_int(256));
        }
        ASSERT_EQ(EventBuildingCheck::broken_promise(input), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace daqloom::protocol

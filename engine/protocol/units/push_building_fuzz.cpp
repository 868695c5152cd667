// libFuzzer: no sizes, delays or repeated messages make push event building break a promise.
#include "base/fuzz_test.hpp"
#include "protocol/units/push_building_check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    return daqloom::protocol::PushBuildingCheck::play(input).broken_promise;
})

// libFuzzer: push building keeps its invariants for all sizes, delays and repeated messages.
#include "base/fuzz_test.hpp"
#include "protocol/units/push_building_check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    return daqloom::protocol::PushBuildingCheck::play(input).broken_promise;
})

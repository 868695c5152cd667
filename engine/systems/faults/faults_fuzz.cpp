// libFuzzer target: in every system with any faults, each lost byte or event is counted, and a run
// that stalls names the cause.
#include "base/fuzz_test.hpp"
#include "systems/faults/any_system_check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    daqloom::systems::AllOutcomes all;
    return daqloom::systems::AnySystem(input, all).broken_promise();
})

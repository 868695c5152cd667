// libFuzzer: for any failures in any system that can be described, each byte or event lost is
// counted, and no run stands still without a named cause.
#include "base/fuzz_test.hpp"
#include "systems/faults/any_system_check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    daqloom::systems::AllOutcomes all;
    return daqloom::systems::AnySystem(input, all).broken_promise();
})

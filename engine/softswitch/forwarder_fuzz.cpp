// libFuzzer: for any frames and any changes of configuration, each frame and each copy leaves once,
// is dropped once and counted, or is still held.
#include "base/fuzz_test.hpp"
#include "softswitch/forwarder_check_test.hpp"

DAQLOOM_FUZZ([](auto input) {
    return daqloom::softswitch::ForwarderCheck::play(input).broken_promise;
})

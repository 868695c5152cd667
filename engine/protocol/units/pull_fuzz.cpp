// libFuzzer: no delays, losses or strange messages make pull building break a promise.
#include "base/fuzz_test.hpp"
#include "protocol/units/pull_check_test.hpp"

DAQLOOM_FUZZ([](auto input) { return daqloom::protocol::PullCheck::play(input).broken_promise; })

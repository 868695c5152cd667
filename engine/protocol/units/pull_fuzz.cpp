// libFuzzer: pull building keeps its invariants for all delays, losses and invalid messages.
#include "base/fuzz_test.hpp"
#include "protocol/units/pull_check_test.hpp"

DAQLOOM_FUZZ([](auto input) { return daqloom::protocol::PullCheck::play(input).broken_promise; })

// libFuzzer: DAQPIPE keeps its invariants for all delays and losses while its epoch closes.
#include "base/fuzz_test.hpp"
#include "protocol/units/daqpipe_check_test.hpp"

DAQLOOM_FUZZ([](auto input) { return daqloom::protocol::DaqpipeCheck::play(input).broken_promise; })

// libFuzzer: no delays and no losses make DAQPIPE break a promise when its epoch is closed.
#include "base/fuzz_test.hpp"
#include "protocol/units/daqpipe_check_test.hpp"

DAQLOOM_FUZZ([](auto input) { return daqloom::protocol::DaqpipeCheck::play(input).broken_promise; })

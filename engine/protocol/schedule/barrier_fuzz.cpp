// libFuzzer: no order of entries and deliveries makes a barrier break a promise.
#include "base/fuzz_test.hpp"
#include "protocol/schedule/barrier_check_test.hpp"

DAQLOOM_FUZZ(daqloom::protocol::BarrierCheck::broken_promise)

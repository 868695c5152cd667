// libFuzzer: a barrier keeps its invariants for every order of entries and deliveries.
#include "base/fuzz_test.hpp"
#include "protocol/schedule/barrier_check_test.hpp"

DAQLOOM_FUZZ(daqloom::protocol::BarrierCheck::broken_promise)

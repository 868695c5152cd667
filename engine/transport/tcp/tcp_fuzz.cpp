// libFuzzer: no sequence of segments, acknowledgements and pauses may make TCP break a rule.
#include "base/fuzz_test.hpp"
#include "transport/tcp/check_test.hpp"

DAQLOOM_FUZZ(daqloom::transport::TcpCheck::broken_promise)

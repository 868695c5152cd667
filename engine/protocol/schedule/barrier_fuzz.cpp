// libFuzzer: no order of entries and deliveries makes a barrier break a promise.
#include <cstdio>
#include <cstdlib>

#include "protocol/schedule/barrier_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using daqloom::protocol::BarrierCheck;
    const std::string broken = BarrierCheck::broken_promise({data, size});
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

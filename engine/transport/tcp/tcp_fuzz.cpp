// libFuzzer: no sequence of segments, acknowledgements and pauses makes TCP break a promise.
#include <cstdio>
#include <cstdlib>

#include "transport/tcp/check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string broken = daqloom::transport::TcpCheck::broken_promise({data, size});
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

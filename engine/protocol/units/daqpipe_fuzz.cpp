// libFuzzer: no delays and no losses make DAQPIPE break a promise when its epoch is closed.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "protocol/units/daqpipe_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using daqloom::protocol::DaqpipeCheck;
    const std::string broken = DaqpipeCheck::play({data, size}).broken_promise;
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

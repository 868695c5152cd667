// libFuzzer: whatever fails in a small system, no byte, credit or event is lost uncounted or wins a
// second fate.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "systems/failures_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    daqloom::systems::WentWrong sum;
    const std::string broken = daqloom::systems::broken_promise_of_failures({data, size}, sum);
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

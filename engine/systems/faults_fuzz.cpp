// libFuzzer: for any failures in any system that can be described, each byte or event lost is
// counted, and no run stands still without a named cause.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "systems/any_system_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::systems;
    AllOutcomes all;
    const std::string broken = AnySystem({data, size}, all).broken_promise();
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

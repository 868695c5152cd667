// libFuzzer: no sizes, delays or repeated messages make push event building break a promise.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "protocol/units/push_building_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using daqloom::protocol::PushBuildingCheck;
    const std::string broken = PushBuildingCheck::play({data, size}).broken_promise;
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

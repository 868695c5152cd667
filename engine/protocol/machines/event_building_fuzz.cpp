// libFuzzer: no sequence of inputs makes the event manager or a builder unit break a promise.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "protocol/machines/event_building_check_test.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using daqloom::protocol::EventBuildingCheck;
    const std::string broken = EventBuildingCheck::broken_promise({data, size});
    if (!broken.empty()) {
        std::fprintf(stderr, "broken promise: %s\n", broken.c_str());
        std::abort();
    }
    return 0;
}

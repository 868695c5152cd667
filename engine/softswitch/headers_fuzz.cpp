// libFuzzer: parsing never reads beyond a frame, and the next switch reads a congestion mark.
#include <vector>

#include "base/fuzz_test.hpp"
#include "softswitch/headers.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace daqloom::softswitch;
    std::vector<std::uint8_t> frame(data, data + size);
    const Headers headers = headers_of(frame);
    if (headers.is_ecn_capable && size < 65'536) {
        mark_congestion(frame, headers);
        const Headers marked = headers_of(frame);
        daqloom::base::require(marked.is_ecn_capable && marked.to == headers.to &&
                               marked.vlan == headers.vlan);
    }
    return 0;
}

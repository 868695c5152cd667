// libFuzzer: any bytes decode to no message, or to a message that encodes to the same bytes.
#include <algorithm>
#include <array>
#include <vector>

#include "base/fuzz_test.hpp"
#include "protocol/units/unit_message.hpp"

using namespace daqloom::protocol;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static std::array<daqloom::base::Bytes, most_message_values> values;
    const auto bytes = std::as_bytes(std::span(data, size));
    if (const auto message = decode_message(bytes, values)) {
        std::vector<std::byte> again(encoded_bytes(*message));
        encode_message(*message, again);
        daqloom::base::require(std::ranges::equal(again, bytes));
    }
    return 0;
}

// libFuzzer: a unit's endpoint address, as received through the run control, with arbitrary bytes.
// The input is the address, or overwrites a valid address.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/fuzz_test.hpp"
#include "live/transport/libfabric/endpoint.hpp"

namespace {

using daqloom::live::ofi::Endpoints;

/// Endpoints, renewed now and then because their address vector keeps all addresses added to it.
Endpoints& endpoints() {
    static std::optional<Endpoints> open;
    static int uses = 0;
    if (!open || ++uses % 1000 == 0) {
        open.reset();
        auto made = Endpoints::open({.provider = "tcp;ofi_rxm", .node = "127.0.0.1"}, 4096, 2);
        daqloom::base::require(made.has_value());
        open.emplace(std::move(*made));
    }
    return *open;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) {
        return 0;
    }
    Endpoints& ours = endpoints();
    const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
    std::vector<std::byte> address(bytes.begin(), bytes.end());
    if ((data[0] & 1) != 0) {
        const auto own = ours.address();
        address = *own;
        const std::size_t at = data[1] % address.size();
        const std::size_t length = std::min(bytes.size(), address.size() - at);
        std::copy_n(bytes.begin(), length, address.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const auto destination = ours.add_address(address);
    daqloom::base::require(!destination || destination->bytes <= std::uint64_t{1} << 62);
    return 0;
}

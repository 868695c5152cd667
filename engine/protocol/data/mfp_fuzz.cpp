// libFuzzer: decoding any bytes as an MFP never reads beyond them, and a decoded MFP is encoded to
// the same packet, except for padding.
#include <algorithm>
#include <vector>

#include "base/fuzz_test.hpp"
#include "protocol/data/mfp.hpp"

using daqloom::base::require;
using namespace daqloom::protocol;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto view = MfpView::decode({data, size});
    if (!view) {
        require(!view.error().message.empty());
        return 0;
    }
    std::vector<MfpFragment> fragments(view->begin(), view->end());
    require(fragments.size() == view->count());
    std::vector<std::uint8_t> packet(static_cast<std::size_t>(view->bytes()));
    require(encode_mfp(view->header(), fragments, packet) == view->bytes());
    const auto again = MfpView::decode(packet);
    require(again && again->header() == view->header() &&
            std::ranges::equal(*again, *view, [](const MfpFragment& a, const MfpFragment& b) {
                return a.type == b.type && std::ranges::equal(a.payload, b.payload);
            }));
    return 0;
}

// libFuzzer: decoding any bytes as a MEP never reads beyond them; a decoded MEP has the same header
// and table when encoded again; checking a MEP as generated data ends with a fault or with all
// streams counted.
#include <memory>
#include <vector>

#include "base/fuzz_test.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_check.hpp"

using daqloom::base::require;
using namespace daqloom;
using namespace daqloom::protocol;

namespace {

/// The streams of the corpus: two streams, with two fragments of 5 bytes in each MFP.
std::vector<MfpGenerator> generated() {
    const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::fixed, 5, 1);
    return {*MfpGenerator::make({.source_id = 1, .packing = 2, .sizes = sizes}),
            *MfpGenerator::make({.source_id = 2, .packing = 2, .sizes = sizes})};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> memory(data, size);
    static const std::vector<MfpGenerator> streams = generated();
    const DataCheck check = check_mep(streams, memory);
    require(check.fault != DataFault::none || check.mfps + check.absent == streams.size());
    require(check.offset >= 0 && check.offset <= static_cast<base::Bytes>(size));

    const auto view = MepView::decode(memory);
    require(view.has_value() == (check.fault != DataFault::malformed_mep));
    if (!view) {
        require(!view.error().message.empty());
        return 0;
    }
    std::vector<MepEntry> entries;
    std::uint64_t sum = 0;
    for (std::uint32_t stream = 0; stream < view->streams(); ++stream) {
        entries.push_back(view->entry(stream));
        for (const std::uint8_t byte : view->mfp(stream)) {
            sum += byte;
        }
    }
    require(sum <= 255 * size);  // no byte is in two of them
    std::vector<std::uint8_t> again(memory.begin(), memory.end());
    require(encode_mep(view->header(), entries, again).has_value());
    require(std::equal(again.begin(), again.end(), memory.begin()));
    return 0;
}

#include "protocol/mfp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace daqloom::protocol {

namespace {

using base::Bytes;
using Memory = std::span<const std::uint8_t>;

constexpr std::size_t most_fragments = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t largest_fragment = std::numeric_limits<std::uint16_t>::max();

constexpr Bytes padded_to(Bytes bytes, std::uint8_t align) {
    const Bytes unit = Bytes{1} << align;
    return (bytes + unit - 1) & ~(unit - 1);
}

/// Writes numbers one after the other, little-endian.
class Writer {
  public:
    explicit Writer(std::span<std::uint8_t> out) : out_(out) {}

    void number(std::uint64_t value, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i) {
            out_[at_++] = static_cast<std::uint8_t>(value >> (8 * i));
        }
    }
    void bytes(Memory values) {
        std::ranges::copy(values, out_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ += values.size();
    }
    void pad_to(std::size_t end) {
        std::fill(out_.begin() + static_cast<std::ptrdiff_t>(at_),
                  out_.begin() + static_cast<std::ptrdiff_t>(end), std::uint8_t{0});
        at_ = end;
    }
    [[nodiscard]] std::size_t at() const { return at_; }

  private:
    std::span<std::uint8_t> out_;
    std::size_t at_ = 0;
};

std::uint64_t number_at(Memory memory, std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        value |= std::uint64_t{memory[at + i]} << (8 * i);
    }
    return value;
}

}  // namespace

base::expected<Bytes> encode_mfp(const MfpHeader& header, std::span<const MfpFragment> fragments,
                                 std::span<std::uint8_t> out) {
    if (fragments.size() > most_fragments) {
        return base::failure(
            fmt::format("MFP of {} fragments; give at most {}", fragments.size(), most_fragments));
    }
    if (header.align > largest_mfp_align) {
        return base::failure(
            fmt::format("MFP align {}; give 0 to {}", header.align, largest_mfp_align));
    }
    const auto count = static_cast<std::uint16_t>(fragments.size());
    Bytes size = mfp_overhead(count);
    for (const MfpFragment& fragment : fragments) {
        if (fragment.payload.size() > largest_fragment) {
            return base::failure(fmt::format("MFP fragment of {} bytes; give at most {}",
                                             fragment.payload.size(), largest_fragment));
        }
        size += padded_to(static_cast<Bytes>(fragment.payload.size()), header.align);
    }
    if (size > static_cast<Bytes>(
                   std::min<std::size_t>(out.size(), std::numeric_limits<std::uint32_t>::max()))) {
        return base::failure(
            fmt::format("MFP of {} bytes; there is room for {}", size, out.size()));
    }
    Writer writer(out);
    writer.number(mfp_magic, 2);
    writer.number(count, 2);
    writer.number(static_cast<std::uint64_t>(size), 4);
    writer.number(header.event_id, 8);
    writer.number(header.source_id, 2);
    writer.number(header.align, 1);
    writer.number(header.version, 1);
    for (const MfpFragment& fragment : fragments) {
        writer.number(fragment.type, 1);
    }
    writer.pad_to((writer.at() + 3) & ~std::size_t{3});
    for (const MfpFragment& fragment : fragments) {
        writer.number(fragment.payload.size(), 2);
    }
    writer.pad_to((writer.at() + 3) & ~std::size_t{3});
    for (const MfpFragment& fragment : fragments) {
        const auto padded = padded_to(static_cast<Bytes>(fragment.payload.size()), header.align);
        const std::size_t end = writer.at() + static_cast<std::size_t>(padded);
        writer.bytes(fragment.payload);
        writer.pad_to(end);
    }
    return size;
}

base::expected<MfpView> MfpView::decode(Memory memory) {
    if (memory.size() < static_cast<std::size_t>(mfp_header_bytes)) {
        return base::failure(fmt::format("MFP cut off: {} bytes, and its header takes {}",
                                         memory.size(), mfp_header_bytes));
    }
    const auto magic = static_cast<std::uint16_t>(number_at(memory, 0, 2));
    if (magic != mfp_magic) {
        return base::failure(
            fmt::format("no MFP: it begins with {:#06x} instead of {:#06x}", magic, mfp_magic));
    }
    const auto count = static_cast<std::uint16_t>(number_at(memory, 2, 2));
    const std::uint64_t size = number_at(memory, 4, 4);
    const MfpHeader header{.event_id = number_at(memory, 8, 8),
                           .source_id = static_cast<std::uint16_t>(number_at(memory, 16, 2)),
                           .align = memory[18],
                           .version = memory[19]};
    if (header.align > largest_mfp_align) {
        return base::failure(fmt::format("MFP of source {:#06x}: align {}; expected 0 to {}",
                                         header.source_id, header.align, largest_mfp_align));
    }
    if (size > memory.size() || size < static_cast<std::uint64_t>(mfp_overhead(count))) {
        return base::failure(
            fmt::format("MFP of source {:#06x}: packet size {} with {} fragments in {} bytes; "
                        "expected {} at least, and not beyond the end",
                        header.source_id, size, count, memory.size(), mfp_overhead(count)));
    }
    const MfpView view(header, count, memory.first(static_cast<std::size_t>(size)));
    auto expected = static_cast<std::uint64_t>(mfp_overhead(count));
    for (std::uint16_t index = 0; index < count; ++index) {
        expected += view.padded_size_of(index);
    }
    if (expected != size) {
        return base::failure(
            fmt::format("MFP of source {:#06x}: packet size {}; its {} fragments take {}",
                        header.source_id, size, count, expected));
    }
    return view;
}

}  // namespace daqloom::protocol

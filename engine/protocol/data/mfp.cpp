#include "protocol/data/mfp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "protocol/data/little_endian.hpp"

namespace daqloom::protocol {

namespace {

using base::Bytes;
using Memory = std::span<const std::uint8_t>;

constexpr std::size_t largest_mfp_fragment = std::numeric_limits<std::uint16_t>::max();

/// Writes numbers and bytes one after the other.
class Writer {
  public:
    explicit Writer(std::span<std::uint8_t> out) : out_(out) {}

    template <class Number>
    void number(std::type_identity_t<Number> value) {
        put_number<Number>(out_, at_, value);
        at_ += sizeof value;
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

}  // namespace

base::expected<Bytes> encode_mfp(const MfpHeader& header, std::span<const MfpFragment> fragments,
                                 std::span<std::uint8_t> out) {
    DAQLOOM_REFUSE_IF(fragments.size() > most_mfp_fragments, "MFP of {} fragments; give at most {}",
                      fragments.size(), most_mfp_fragments);
    DAQLOOM_REFUSE_IF(header.align > largest_mfp_align, "MFP align {}; give 0 to {}", header.align,
                      largest_mfp_align);
    const auto count = static_cast<std::uint16_t>(fragments.size());
    Bytes size = mfp_overhead(count);
    for (const MfpFragment& fragment : fragments) {
        DAQLOOM_REFUSE_IF(fragment.payload.size() > largest_mfp_fragment,
                          "MFP fragment of {} bytes; give at most {}", fragment.payload.size(),
                          largest_mfp_fragment);
        size += padded_to(static_cast<Bytes>(fragment.payload.size()), header.align);
    }
    DAQLOOM_REFUSE_IF(size > static_cast<Bytes>(std::min<std::size_t>(
                                 out.size(), std::numeric_limits<std::uint32_t>::max())),
                      "MFP of {} bytes; there is room for {}", size, out.size());
    Writer writer(out);
    writer.number<std::uint16_t>(mfp_magic);
    writer.number<std::uint16_t>(count);
    writer.number<std::uint32_t>(static_cast<std::uint32_t>(size));
    writer.number<std::uint64_t>(header.event_id);
    writer.number<std::uint16_t>(header.source_id);
    writer.number<std::uint8_t>(header.align);
    writer.number<std::uint8_t>(header.version);
    for (const MfpFragment& fragment : fragments) {
        writer.number<std::uint8_t>(fragment.type);
    }
    writer.pad_to((writer.at() + 3) & ~std::size_t{3});
    for (const MfpFragment& fragment : fragments) {
        writer.number<std::uint16_t>(static_cast<std::uint16_t>(fragment.payload.size()));
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

base::expected<Bytes> mfp_size(Memory front) {
    DAQLOOM_REFUSE_IF(front.size() < static_cast<std::size_t>(mfp_header_bytes),
                      "MFP cut off: {} bytes, and its header takes {}", front.size(),
                      mfp_header_bytes);
    const auto magic = number_at<std::uint16_t>(front, 0);
    DAQLOOM_REFUSE_IF(magic != mfp_magic, "no MFP: it begins with {:#06x} instead of {:#06x}",
                      magic, mfp_magic);
    return number_at<std::uint32_t>(front, 4);
}

base::expected<MfpView> MfpView::decode(Memory memory) {
    DAQLOOM_TRY(packet_size, mfp_size(memory));
    const auto size = static_cast<std::size_t>(packet_size);
    const auto count = number_at<std::uint16_t>(memory, 2);
    const MfpHeader header{.event_id = number_at<std::uint64_t>(memory, 8),
                           .source_id = number_at<std::uint16_t>(memory, 16),
                           .align = memory[18],
                           .version = memory[19]};
    DAQLOOM_REFUSE_IF(header.align > largest_mfp_align,
                      "MFP of source {:#06x}: align {}; expected 0 to {}", header.source_id,
                      header.align, largest_mfp_align);
    DAQLOOM_REFUSE_IF(
        size > memory.size() || size < static_cast<std::uint64_t>(mfp_overhead(count)),
        "MFP of source {:#06x}: packet size {} with {} fragments in {} bytes; "
        "expected {} at least, and not beyond the end",
        header.source_id, size, count, memory.size(), mfp_overhead(count));
    const MfpView view(header, count, memory.first(static_cast<std::size_t>(size)));
    auto expected = static_cast<std::uint64_t>(mfp_overhead(count));
    for (std::uint16_t index = 0; index < count; ++index) {
        expected += view.padded_size_of(index);
    }
    DAQLOOM_REFUSE_IF(expected != size,
                      "MFP of source {:#06x}: packet size {}; its {} fragments take {}",
                      header.source_id, size, count, expected);
    return view;
}

Bytes MfpView::bytes_for_size(Memory front) {
    return mfp_overhead(number_at<std::uint16_t>(front, 2));
}

std::optional<Bytes> MfpView::size_from(Memory front) {
    const auto size = mfp_size(front);
    const std::uint8_t align = size ? front[18] : largest_mfp_align + 1;
    if (align > largest_mfp_align || std::ssize(front) < bytes_for_size(front)) {
        return std::nullopt;
    }
    const auto count = number_at<std::uint16_t>(front, 2);
    const MfpView view({.align = align}, count, front);
    Bytes expected = mfp_overhead(count);
    for (std::uint16_t index = 0; index < count; ++index) {
        expected += static_cast<Bytes>(view.padded_size_of(index));
    }
    return expected == *size ? std::optional(expected) : std::nullopt;
}

std::uint64_t fragment_bytes(std::span<const std::byte> memory) {
    const auto u16 = [&](std::size_t at) {
        std::uint16_t value = 0;
        std::memcpy(&value, memory.data() + at, sizeof value);
        return value;
    };
    const std::size_t count = u16(2);
    const std::size_t sizes_at = mfp_header_bytes + ((count + 3) & ~std::size_t{3});
    if (sizes_at + 2 * count > memory.size()) {
        return 0;
    }
    std::uint64_t sum = 0;
    for (std::size_t fragment = 0; fragment < count; ++fragment) {
        sum += u16(sizes_at + 2 * fragment);
    }
    return sum;
}

}  // namespace daqloom::protocol

// The multi-fragment packet (MFP): fragments of successive events from one stream.
//
// Layout of LHCb's document EDMS 2100937, derived from public code and not checked against the
// document; this file contains all that is known of the layout. Little-endian:
//
//     0  magic 0x40ce u16 | count u16 | packet size u32
//     8  event id u64, of the first fragment
//    16  source id u16 | align u8 (log2) | version u8
//    20  types u8[count], padded to 4 B
//        sizes u16[count], padded to 4 B
//        the fragments, each padded to 2^align B
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>

#include "base/expected.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

inline constexpr std::uint8_t usual_mfp_align = 2;  ///< log2

struct MfpHeader {
    std::uint64_t event_id = 0;
    std::uint16_t source_id = 0;
    std::uint8_t align = usual_mfp_align;  ///< log2, 0 … largest_mfp_align
    std::uint8_t version = 3;

    friend constexpr bool operator==(const MfpHeader&, const MfpHeader&) = default;
};

/// Fragment of one event; at most 65 535 B.
struct MfpFragment {
    std::uint8_t type = 0;
    std::span<const std::uint8_t> payload;
};

inline constexpr std::uint16_t mfp_magic = 0x40ce;
inline constexpr base::Bytes mfp_header_bytes = 20;
inline constexpr std::uint8_t largest_mfp_align = 16;
inline constexpr std::uint16_t most_mfp_fragments = 65'535;  ///< limit of 16 bits

/// Bytes up to the next multiple of 2^align.
constexpr base::Bytes padded_to(base::Bytes bytes, std::uint8_t align) {
    const base::Bytes unit = base::Bytes{1} << align;
    return (bytes + unit - 1) & ~(unit - 1);
}

/// Bytes of an MFP before its fragments: header, types and sizes.
constexpr base::Bytes mfp_overhead(std::uint16_t fragments) {
    return mfp_header_bytes + padded_to(fragments, 2) + padded_to(base::Bytes{2} * fragments, 2);
}

/// Whether `memory` begins with an MFP header whose packet size is the size of `memory`. Fragments
/// are not checked (see MfpView).
constexpr bool has_declared_length(std::span<const std::byte> memory) {
    const auto at = [&](std::size_t place) {
        return std::to_integer<std::uint32_t>(memory[place]);
    };
    return memory.size() >= static_cast<std::size_t>(mfp_header_bytes) &&
           (at(0) | at(1) << 8) == mfp_magic &&
           (at(4) | at(5) << 8 | at(6) << 16 | at(7) << 24) == memory.size();
}

/// Sum of the sizes of an MFP's fragments, without headers and padding; 0 if the table of sizes
/// exceeds `memory`. Precondition: has_declared_length.
std::uint64_t fragment_bytes(std::span<const std::byte> memory);

/// Writes an MFP to the front of `out`, with padding of zeros, and returns its size. Fails if there
/// are too many fragments, a fragment is too long, or `out` is too short.
base::expected<base::Bytes> encode_mfp(const MfpHeader& header,
                                       std::span<const MfpFragment> fragments,
                                       std::span<std::uint8_t> out);

/// Reads the packet size from an MFP's header, the first `mfp_header_bytes` bytes (or more).
base::expected<base::Bytes> mfp_size(std::span<const std::uint8_t> front);

/// A view of an MFP in memory; a range of MfpFragment.
class MfpView {
  public:
    class Iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = MfpFragment;
        using difference_type = std::ptrdiff_t;
        using pointer = void;
        using reference = MfpFragment;

        Iterator() = default;

        MfpFragment operator*() const {
            return {view_->packet_[view_->types_at() + index_],
                    view_->packet_.subspan(payload_at_, view_->size_of(index_))};
        }
        Iterator& operator++() {
            payload_at_ += view_->padded_size_of(index_++);
            return *this;
        }
        Iterator operator++(int) {
            Iterator before = *this;
            ++*this;
            return before;
        }
        friend bool operator==(const Iterator& a, const Iterator& b) {
            return a.index_ == b.index_;
        }

      private:
        friend class MfpView;
        Iterator(const MfpView& view, std::uint16_t index, std::size_t payload_at)
            : view_(&view), index_(index), payload_at_(payload_at) {}

        const MfpView* view_ = nullptr;
        std::uint16_t index_ = 0;
        std::size_t payload_at_ = 0;
    };

    /// The MFP at the front of `memory`. Validates arbitrary bytes: fails unless all of the MFP
    /// lies within `memory` and its packet size agrees with its fragments.
    static base::expected<MfpView> decode(std::span<const std::uint8_t> memory);
    /// Number of first bytes that `size_from` needs. `front`: at least `mfp_header_bytes` bytes.
    static base::Bytes bytes_for_size(std::span<const std::uint8_t> front);
    /// The packet size if header, types and sizes in `front` are consistent; fragments are not
    /// read. Other data are consistent by chance once in 2^48.
    static std::optional<base::Bytes> size_from(std::span<const std::uint8_t> front);

    [[nodiscard]] const MfpHeader& header() const { return header_; }
    [[nodiscard]] std::uint16_t count() const { return count_; }
    [[nodiscard]] base::Bytes bytes() const { return static_cast<base::Bytes>(packet_.size()); }

    /// Valid as long as this view and the memory.
    [[nodiscard]] Iterator begin() const {
        return {*this, 0, static_cast<std::size_t>(mfp_overhead(count_))};
    }
    [[nodiscard]] Iterator end() const { return {*this, count_, packet_.size()}; }

  private:
    MfpView(MfpHeader header, std::uint16_t count, std::span<const std::uint8_t> packet)
        : header_(header), count_(count), packet_(packet) {}

    [[nodiscard]] static std::size_t types_at() { return mfp_header_bytes; }
    [[nodiscard]] std::size_t sizes_at() const {
        return types_at() + ((std::size_t{count_} + 3) & ~std::size_t{3});
    }
    [[nodiscard]] std::size_t size_of(std::uint16_t index) const {
        const std::size_t at = sizes_at() + 2 * std::size_t{index};
        return static_cast<std::size_t>(packet_[at] | packet_[at + 1] << 8);
    }
    [[nodiscard]] std::size_t padded_size_of(std::uint16_t index) const {
        return static_cast<std::size_t>(
            padded_to(static_cast<base::Bytes>(size_of(index)), header_.align));
    }

    MfpHeader header_;
    std::uint16_t count_;
    std::span<const std::uint8_t> packet_;
};

}  // namespace daqloom::protocol

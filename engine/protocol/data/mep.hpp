// The multi-event packet (MEP): the MFPs of all streams for the same events, as a table with their
// offsets. Little-endian:
//
//      0  magic u32 "MEP1" | streams u32
//      8  MEP number u64
//     16  first event id u64
//     24  events u32 | flags u32 (bit 0: incomplete)
//     32  bytes u64 of the whole MEP, header and padding included
//     40  per stream: offset u64 | bytes u32 | source id u16 | state u16
//         the MFPs, each at its offset, in the order of the table; gaps between them may hold
//         anything
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

enum class MepState : std::uint16_t {
    complete = 0,
    /// The readout unit was lost before it wrote the MFP; the space reserved for it may remain.
    missing = 1,
    empty = 2,  ///< the stream had no MFP for these events: 0 bytes
};

/// The handling of a MEP that lacks MFPs of lost readout units. A MEP that lacks all MFPs is
/// dropped in both cases.
enum class WhenIncomplete { deliver, drop };

struct MepEntry {
    base::Bytes offset = 0;  ///< from the MEP's first byte
    base::Bytes bytes = 0;
    std::uint16_t source_id = 0;
    MepState state = MepState::complete;

    friend constexpr bool operator==(const MepEntry&, const MepEntry&) = default;
};

struct MepHeader {
    MepId mep{};
    std::uint64_t event_id = 0;  ///< of the first event
    std::uint32_t events = 0;    ///< the packing factor

    friend constexpr bool operator==(const MepHeader&, const MepHeader&) = default;
};

inline constexpr std::uint32_t mep_magic = 0x3150454d;
inline constexpr std::uint32_t largest_mep_streams = 65'536;

/// The size of a MEP's header and table, in front of its MFPs.
constexpr base::Bytes mep_overhead(std::uint32_t streams) { return 40 + base::Bytes{16} * streams; }

/// Writes header and table in front of the MFPs, which `mep` (all of the MEP) already contains.
/// Fails if `MepView::decode` would refuse the result.
base::expected<void> encode_mep(const MepHeader& header, std::span<const MepEntry> entries,
                                std::span<std::uint8_t> mep);

/// Reads the size of a MEP from its header, the first `mep_overhead(0)` bytes (or more).
base::expected<base::Bytes> mep_size(std::span<const std::uint8_t> front);

/// Whether the header flag reports missing MFPs. `front` may be any memory, even without a MEP.
bool lacks_mfps(std::span<const std::uint8_t> front);

/// A view of a MEP in memory, which must not change while the view exists.
class MepView {
  public:
    /// Validates arbitrary bytes: fails unless every MFP of the table lies within `memory`, after
    /// the table and without overlap, and the size is that of `memory`.
    static base::expected<MepView> decode(std::span<const std::uint8_t> memory);
    /// Number of first bytes that `size_from` needs. `front`: at least `mep_overhead(0)` bytes.
    static base::Bytes bytes_for_size(std::span<const std::uint8_t> front);
    /// The MEP's size if its header and table in `front` are consistent; MFPs are not read.
    static std::optional<base::Bytes> size_from(std::span<const std::uint8_t> front);

    [[nodiscard]] const MepHeader& header() const { return header_; }
    [[nodiscard]] std::uint32_t streams() const { return streams_; }
    [[nodiscard]] base::Bytes bytes() const { return static_cast<base::Bytes>(memory_.size()); }
    /// Whether no MFP is missing.
    [[nodiscard]] bool is_complete() const;
    /// Entry in the table at position `stream`, which is below `streams()`.
    [[nodiscard]] MepEntry entry(std::uint32_t stream) const;
    /// The bytes of a stream's MFP; empty where it is missing or empty.
    [[nodiscard]] std::span<const std::uint8_t> mfp(std::uint32_t stream) const;

  private:
    static base::expected<MepView> decode_front(std::span<const std::uint8_t> front,
                                                base::Bytes bytes);

    MepView(MepHeader header, std::uint32_t streams, std::span<const std::uint8_t> memory)
        : header_(header), streams_(streams), memory_(memory) {}

    MepHeader header_;
    std::uint32_t streams_;
    std::span<const std::uint8_t> memory_;
};

}  // namespace daqloom::protocol

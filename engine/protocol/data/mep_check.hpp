// Byte-by-byte comparison of built events with the generated data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::protocol {

enum class DataFault : std::uint8_t {
    none,
    malformed_mep,  ///< `MepView::decode` refuses it
    malformed_mfp,  ///< `MfpView::decode` refuses it, or it does not fill its place
    source_id,      ///< unknown, duplicate, or of another stream
    event,          ///< of other events
    count,          ///< of more or fewer events
    layout,         ///< align, version or a fragment's type
    size,           ///< a fragment's
    pattern,        ///< a fragment's bytes
    padding,        ///< not zero
};

/// In words: "fragment bytes", "event number", …
std::string_view name_of(DataFault fault);

struct DataCheck {
    DataFault fault = DataFault::none;  ///< the first fault; later bytes are unchecked
    DAQLOOM_FIELDS(DataCheck, (std::uint16_t, source_id, "Number of the stream with the fault."),
                   (std::uint64_t, event,
                    "Number of the event with the fault, or of the first event of its MFP."),
                   (base::Bytes, offset, "Offset of the fault from the first byte checked (B)."),
                   (std::uint32_t, mfps, "MFPs that are right."),
                   (std::uint32_t, absent, "MFPs missing, empty, or not in the table."),
                   (std::uint64_t, fragments, "Correct fragments, without those behind a fault."),
                   (base::Bytes, fragment_bytes,
                    "Bytes of the correct fragments, without headers and padding."))
    std::uint32_t unknown = 0;  ///< MFPs without data to compare with
};

/// Compares the MFP that fills `memory` with the generated MFP of the events from `event` on.
/// Allocates only if the MFP is malformed.
DataCheck check_mfp(const MfpGenerator& stream, std::uint64_t event,
                    std::span<const std::uint8_t> memory);

/// Result of a search for the pattern in an MFP whose generator is unknown.
struct PatternScan {
    DataFault fault = DataFault::none;  ///< pattern, padding, or malformed_mfp: the first
    std::uint64_t event = 0;            ///< event of the fault
    base::Bytes offset = 0;
    std::uint64_t recognised = 0;  ///< fragments of 8 bytes or more that consist of the pattern
};

/// Scans the whole MFP that fills `memory`. A wrong fragment size is detected without a table of
/// sizes, because padding then lies in place of the pattern, or the pattern in place of padding.
PatternScan scan_pattern(std::span<const std::uint8_t> memory);

/// Checks the table and all MFPs of the MEP that fills `memory`, but not the gaps between MFPs.
/// `streams`: possible streams, by ascending source id. Allocates only if the MEP is malformed.
DataCheck check_mep(std::span<const MfpGenerator> streams, std::span<const std::uint8_t> memory);

}  // namespace daqloom::protocol

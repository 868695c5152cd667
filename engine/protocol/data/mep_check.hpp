// Whether a built event is what was generated, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/units.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::protocol {

enum class DataFault : std::uint8_t {
    none,
    malformed_mep,  ///< `MepView::decode` refuses it
    malformed_mfp,  ///< `MfpView::decode` refuses it, or it does not fill its place
    source_id,      ///< nobody's, twice, or another's
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
    DataFault fault = DataFault::none;  ///< the first; what follows was not looked at
    std::uint16_t source_id = 0;        ///< where the fault is
    std::uint64_t event = 0;            ///< where the fault is, or the first event of its MFP
    base::Bytes offset = 0;             ///< of the fault, from the first byte of what was checked
    std::uint32_t mfps = 0;             ///< that are right
    std::uint32_t absent = 0;           ///< MFPs of streams: missing, empty, or not in the table
    std::uint32_t unknown = 0;          ///< MFPs with which there is nothing to compare
    std::uint64_t fragments = 0;        ///< that are right, without those behind a fault
    base::Bytes fragment_bytes = 0;     ///< of these, without headers and padding
};

/// All bytes of the MFP that fills `memory`: expected is the generator's for the events from
/// `event` on. No allocation unless it is malformed.
DataCheck check_mfp(const MfpGenerator& stream, std::uint64_t event,
                    std::span<const std::uint8_t> memory);

/// What there is of the pattern in an MFP of which nothing is known but what it says itself.
struct PatternScan {
    DataFault fault = DataFault::none;  ///< pattern, padding, or malformed_mfp: the first
    std::uint64_t event = 0;            ///< where it is
    base::Bytes offset = 0;
    std::uint64_t recognised = 0;  ///< fragments of 8 bytes or more, all of them the pattern
};

/// The MFP that fills `memory`, to its end. Sizes are not checked against a table, but a wrong one
/// shows: there is no padding where pattern is expected, and no pattern where padding is.
PatternScan scan_pattern(std::span<const std::uint8_t> memory);

/// All MFPs of the MEP that fills `memory`, and its table; gaps between MFPs may hold anything.
/// `streams`: those that it may have, by ascending source id. No allocation unless it is malformed.
DataCheck check_mep(std::span<const MfpGenerator> streams, std::span<const std::uint8_t> memory);

}  // namespace daqloom::protocol

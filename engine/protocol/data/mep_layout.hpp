// The offset of every multi-fragment packet (MFP) in a multi-event packet (MEP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"

namespace daqloom::protocol {

struct MepLayout {
    base::Bytes header = 0;     ///< in front of the MFPs, 0 … 2^30
    base::Bytes alignment = 1;  ///< every MFP starts at a multiple of it; a power of two up to 2^20
};

inline constexpr base::Bytes largest_mep_header = base::Bytes{1} << 30;
inline constexpr base::Bytes largest_mfp_alignment = base::Bytes{1} << 20;
/// The packet size of an MFP is a 32-bit number.
inline constexpr base::Bytes largest_mfp_size = (base::Bytes{1} << 32) - 1;

constexpr base::Bytes aligned(base::Bytes bytes, base::Bytes alignment) {
    return (bytes + alignment - 1) & -alignment;
}

/// Lays the MFPs out in the order of their streams: `offsets[i]` is the sum of the aligned sizes of
/// the header and of all streams with an index below i. Returns the size of the MEP with the last
/// padding.
/// Precondition: as many offsets as sizes, at most 2^30; sizes from 0 to `largest_mfp_size`.
constexpr base::Bytes lay_out(MepLayout layout, std::span<const base::Bytes> sizes,
                              std::span<base::Bytes> offsets) {
    base::Bytes end = aligned(layout.header, layout.alignment);
    for (std::size_t stream = 0; stream < sizes.size(); ++stream) {
        offsets[stream] = end;
        end += aligned(sizes[stream], layout.alignment);
    }
    return end;
}

}  // namespace daqloom::protocol

// SACK blocks of an acknowledgement, stored in a pool beside its frame.
#pragma once

#include <array>
#include <cstdint>

namespace daqloom::ethernet {

/// Bytes [begin, end) of the stream.
struct StreamRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    friend constexpr bool operator==(const StreamRange&, const StreamRange&) = default;
};

/// The SACK blocks of one acknowledgement, the most recently changed first (RFC 2018, 4).
struct SackBlocks {
    std::array<StreamRange, 4> blocks{};
    std::uint32_t count = 0;
};

}  // namespace daqloom::ethernet

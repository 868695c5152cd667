// Offsets in a byte stream; a TCP segment carries the low 32 bits of its offset.
#pragma once

#include <cstdint>

namespace daqloom::transport {

/// The stream offset whose low 32 bits are `low` and that lies nearest to `reference`.
constexpr std::uint64_t unwrap(std::uint32_t low, std::uint64_t reference) {
    const auto difference = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(reference));
    return reference + static_cast<std::uint64_t>(static_cast<std::int64_t>(difference));
}

}  // namespace daqloom::transport

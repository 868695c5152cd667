// The 32 immediate bits of a write: they identify the written MFP, so that the builder unit can
// count it.
//
//     31 … 26  epoch mod 64
//     25 … 16  slot: the MEP's turn at its builder, mod 1024
//     15 … 0   stream: number of the stream among those of all readout units
#pragma once

#include <cstdint>

namespace daqloom::protocol {

struct Immediate {
    static constexpr std::uint32_t epochs = 64;
    static constexpr std::uint32_t slots = 1024;
    static constexpr std::uint32_t streams = 65'536;

    std::uint32_t epoch = 0;   ///< mod `epochs`
    std::uint32_t slot = 0;    ///< mod `slots`
    std::uint32_t stream = 0;  ///< below `streams`

    [[nodiscard]] constexpr std::uint32_t encode() const {
        return epoch % epochs << 26 | slot % slots << 16 | stream % streams;
    }
    static constexpr Immediate decode(std::uint32_t bits) {
        return {
            .epoch = bits >> 26, .slot = bits >> 16 & (slots - 1), .stream = bits & (streams - 1)};
    }

    friend constexpr bool operator==(const Immediate&, const Immediate&) = default;
};

/// The turn of the MEP in this slot, among the turns in [oldest, oldest + slots).
constexpr std::uint64_t turn_in_slot(std::uint32_t slot, std::uint64_t oldest) {
    const auto ahead = (slot + Immediate::slots - oldest % Immediate::slots) % Immediate::slots;
    return oldest + ahead;
}

}  // namespace daqloom::protocol

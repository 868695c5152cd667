// The messages between readout units, builder units and the event manager, as bytes. Little-endian:
//
//      0  kind u8 | 0 u8 | count u16 | round u32
//      8  number u64
//     16  values i64[count]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.hpp"

namespace daqloom::protocol {

struct UnitMessage {
    enum class Kind : std::uint8_t {
        announce = 1,     ///< readout to builder: `values` are the sizes of MEP `number`'s MFPs
        grant = 2,        ///< builder to readout: `values` are offsets in the builder's buffer
        discard = 3,      ///< builder to readout: MEP `number` is not built
        barrier = 4,      ///< readout to readout: generation `number`, `round`
        last_answer = 5,  ///< builder to readout: end of the turns it has answered; in DAQPIPE,
                          ///< total number of MFPs that it requests
        assign = 6,       ///< event manager to builder: event `number`
        done = 7,         ///< builder to event manager: event `number` has freed its credit
        request = 8,      ///< builder to readout: event `number` to the offset in `values`
        closing = 9,      ///< builder to readout: it closes, and has answered turns up to `number`
        last_announcement = 10,  ///< readout to builder: no turn from `number` on is to be answered
        last_assignment = 11,    ///< event manager to builder: it gets `number` events in all
        ready = 12,              ///< readout to builder: `number` and `values` of a WriteRequest
        go = 13,       ///< builder to readout: permits a request, held for `values[0]` (ps)
        through = 14,  ///< readout to builder: request `number` ends after `values[0]` writes
        beat = 15,     ///< unit to unit: `number` of the run control's last beat
    };

    Kind kind = Kind::announce;
    std::uint32_t round = 0;
    std::uint64_t number = 0;
    std::span<const base::Bytes> values;
};

inline constexpr std::size_t most_message_values = 1'024;
inline constexpr std::size_t ready_values = 6;  ///< of a `ready`

constexpr std::size_t encoded_bytes(const UnitMessage& message) {
    return 16 + 8 * message.values.size();
}

/// Encodes to the front of `out`. Precondition: `out` has at least `encoded_bytes` bytes.
void encode_message(const UnitMessage& message, std::span<std::byte> out);

/// The decoded message, or none. Its values, which are not negative, are stored in `values`.
std::optional<UnitMessage> decode_message(std::span<const std::byte> bytes,
                                          std::span<base::Bytes> values);

}  // namespace daqloom::protocol

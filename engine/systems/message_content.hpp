// Content of a message between nodes: a message of a unit, or a write of data.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::systems {

/// Size of a message on the wire: `control_bytes` without values, and more with them.
inline base::Bytes message_bytes(base::Bytes control_bytes, const protocol::UnitMessage& message) {
    constexpr std::size_t head = protocol::encoded_bytes({});
    return control_bytes + static_cast<base::Bytes>(protocol::encoded_bytes(message) - head);
}

/// A unit's message with at most `kMostValues` values, or a write of data; `number` and `round`
/// identify the data.
template <std::size_t kMostValues>
struct MessageContent {
    std::uint64_t number = 0;
    std::uint32_t round = 0;
    protocol::UnitMessage::Kind kind{};
    std::uint8_t count = 0;
    std::array<base::Bytes, kMostValues> values{};

    static MessageContent of(const protocol::UnitMessage& message) {
        MessageContent content{.number = message.number,
                               .round = message.round,
                               .kind = message.kind,
                               .count = static_cast<std::uint8_t>(message.values.size())};
        std::ranges::copy(message.values, content.values.begin());
        return content;
    }
    /// The unit's message; its values point into this content.
    [[nodiscard]] protocol::UnitMessage message() const {
        return {kind, round, number, std::span(values).first(count)};
    }
};

}  // namespace daqloom::systems

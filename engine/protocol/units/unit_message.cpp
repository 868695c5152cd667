#include "protocol/units/unit_message.hpp"

#include <bit>
#include <cstring>

namespace daqloom::protocol {

namespace {

static_assert(std::endian::native == std::endian::little, "messages are copied as they are");

struct Head {
    std::uint8_t kind;
    std::uint8_t zero;
    std::uint16_t count;
    std::uint32_t round;
    std::uint64_t number;
};
static_assert(sizeof(Head) == 16);

}  // namespace

void encode_message(const UnitMessage& message, std::span<std::byte> out) {
    const Head head{.kind = static_cast<std::uint8_t>(message.kind),
                    .zero = 0,
                    .count = static_cast<std::uint16_t>(message.values.size()),
                    .round = message.round,
                    .number = message.number};
    std::memcpy(out.data(), &head, sizeof head);
    if (!message.values.empty()) {
        std::memcpy(out.data() + sizeof head, message.values.data(), message.values.size_bytes());
    }
}

std::optional<UnitMessage> decode_message(std::span<const std::byte> bytes,
                                          std::span<base::Bytes> values) {
    Head head{};
    if (bytes.size() < sizeof head) {
        return std::nullopt;
    }
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto kind = static_cast<UnitMessage::Kind>(head.kind);
    if (kind < UnitMessage::Kind::announce || kind > UnitMessage::Kind::beat || head.zero != 0 ||
        head.count > values.size() || bytes.size() != sizeof head + 8 * std::size_t{head.count}) {
        return std::nullopt;
    }
    if (head.count > 0) {
        std::memcpy(values.data(), bytes.data() + sizeof head, 8 * std::size_t{head.count});
    }
    for (const base::Bytes value : values.first(head.count)) {
        if (value < 0) {
            return std::nullopt;
        }
    }
    return UnitMessage{.kind = kind,
                       .round = head.round,
                       .number = head.number,
                       .values = values.first(head.count)};
}

}  // namespace daqloom::protocol

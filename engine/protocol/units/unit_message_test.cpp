#include "protocol/units/unit_message.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace daqloom::protocol {
namespace {

using Kind = UnitMessage::Kind;

std::vector<std::byte> encoded(const UnitMessage& message) {
    std::vector<std::byte> bytes(encoded_bytes(message));
    encode_message(message, bytes);
    return bytes;
}

TEST(UnitMessage, HasTheLayoutThatItsHeaderDescribes) {
    const std::array<base::Bytes, 2> sizes = {0x0102, 3};
    const auto bytes = encoded({Kind::announce, 0x05060708, 0x1112131415161718, sizes});
    const std::array<unsigned, 32> expected = {
        1,    0,    2, 0, 0x08, 0x07, 0x06, 0x05, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
        0x02, 0x01, 0, 0, 0,    0,    0,    0,    3,    0,    0,    0,    0,    0,    0,    0};
    ASSERT_EQ(bytes.size(), expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
    }
}

TEST(UnitMessage, ComesBackAsItWentIn) {
    const std::array<base::Bytes, 3> offsets = {0, 1, base::Bytes{1} << 49};
    std::array<base::Bytes, most_message_values> values{};
    for (auto kind = Kind::announce; kind <= Kind::request;
         kind = static_cast<Kind>(static_cast<int>(kind) + 1)) {
        const auto bytes = encoded({kind, 7, 1ULL << 63, offsets});
        const auto message = decode_message(bytes, values);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->kind, kind);
        EXPECT_EQ(message->round, 7);
        EXPECT_EQ(message->number, 1ULL << 63);
        EXPECT_TRUE(std::ranges::equal(message->values, offsets));
    }
}

TEST(UnitMessage, InvalidMessagesAreRefused) {
    const std::array<base::Bytes, 2> sizes = {4, 5};
    const auto good = encoded({Kind::grant, 0, 1, sizes});
    std::array<base::Bytes, 2> values{};
    ASSERT_TRUE(decode_message(good, values));
    EXPECT_FALSE(decode_message(good, std::span(values).first(1)))
        << "more values than there can be";
    for (std::size_t length = 0; length < good.size(); ++length) {
        EXPECT_FALSE(decode_message(std::span(good).first(length), values)) << length;
    }
    auto longer = good;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode_message(longer, values));
    for (const int kind : {0, 16, 255}) {
        auto bad = good;
        bad[0] = static_cast<std::byte>(kind);
        EXPECT_FALSE(decode_message(bad, values)) << kind;
    }
    auto negative = good;
    negative[23] = std::byte{0x80};
    EXPECT_FALSE(decode_message(negative, values));
}

}  // namespace
}  // namespace daqloom::protocol

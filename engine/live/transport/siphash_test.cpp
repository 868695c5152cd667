#include "live/transport/siphash.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace daqloom::live {
namespace {

TEST(SipHash, GivesTheDigestOfItsPaper) {
    // Appendix A of the paper: key 00 01 … 0f, text 00 01 … 0e.
    std::array<std::byte, 16> key;
    std::vector<std::byte> text;
    for (std::size_t i = 0; i < 16; ++i) {
        key[i] = static_cast<std::byte>(i);
        text.push_back(static_cast<std::byte>(i));
    }
    text.pop_back();
    EXPECT_EQ(SipHash(key)(text), 0xa129ca6149be45e5);
}

TEST(SipHash, DependsOnEveryBitOfKeyAndText) {
    std::array<std::byte, 16> key{};
    std::array<std::byte, 20> text{};
    const auto before = SipHash(key)(text);
    for (std::size_t bit = 0; bit < 8 * (text.size() + key.size()); ++bit) {
        auto other_text = text;
        auto other_key = key;
        const std::size_t byte = bit / 8;
        (byte < text.size() ? other_text[byte] : other_key[byte - text.size()]) ^= std::byte{1}
                                                                                   << (bit % 8);
        EXPECT_NE(SipHash(other_key)(other_text), before);
    }
}

}  // namespace
}  // namespace daqloom::live

#include "protocol/data/mfp.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace daqloom::protocol {
namespace {

using Packet = std::vector<std::uint8_t>;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Event 0x1000 of source 0x2801: types 1, 2, 3 with `ABCDE`, `FGHIJKLM`, `NOPQ`, padded to 4 B.
const Packet example_mfp = {0xce, 0x40, 0x03, 0x00, 0x34, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
                            0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x28, 0x02, 0x03, 0x01, 0x02,
                            0x03, 0x00, 0x05, 0x00, 0x08, 0x00, 0x04, 0x00, 0x00, 0x00, 0x41,
                            0x42, 0x43, 0x44, 0x45, 0x00, 0x00, 0x00, 0x46, 0x47, 0x48, 0x49,
                            0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f, 0x50, 0x51};
const MfpHeader header_of_example_mfp{
    .event_id = 0x1000, .source_id = 0x2801, .align = 2, .version = 3};

TEST(Mfp, EncodesTheWorkedExample) {
    const std::vector<MfpFragment> fragments = {
        {1, bytes_of("ABCDE")}, {2, bytes_of("FGHIJKLM")}, {3, bytes_of("NOPQ")}};
    Packet out(100, 0xff);
    const auto size = encode_mfp(header_of_example_mfp, fragments, out);
    ASSERT_EQ(size, 52);
    out.resize(static_cast<std::size_t>(*size));
    EXPECT_EQ(out, example_mfp);
}

TEST(Mfp, DecodesTheWorkedExample) {
    Packet longer = example_mfp;
    longer.push_back(0xee);  // what follows is no part of it
    const auto view = MfpView::decode(longer);
    ASSERT_TRUE(view.has_value()) << view.error().message;
    EXPECT_EQ(view->header(), header_of_example_mfp);
    EXPECT_EQ(view->bytes(), 52);
    std::string text;
    for (const auto [type, payload] : *view) {
        text += std::to_string(type) + ':' + std::string(payload.begin(), payload.end()) + ' ';
    }
    EXPECT_EQ(text, "1:ABCDE 2:FGHIJKLM 3:NOPQ ");
}

TEST(Mfp, OfNoFragmentsIsItsHeader) {
    Packet out(20);
    EXPECT_EQ(encode_mfp({}, {}, out), 20);
    const auto view = MfpView::decode(out);
    ASSERT_TRUE(view.has_value());
    EXPECT_EQ(view->begin(), view->end());
}

TEST(Mfp, ComesBackAsItWas) {
    base::RandomStream random(1, "fragments");
    for (int round = 0; round < 50; ++round) {
        const MfpHeader header{.event_id = random(),
                               .source_id = static_cast<std::uint16_t>(random()),
                               .align = static_cast<std::uint8_t>(random.uniform_int(8)),
                               .version = static_cast<std::uint8_t>(random())};
        std::vector<Packet> payloads(random.uniform_int(40));
        std::vector<MfpFragment> fragments;
        for (Packet& payload : payloads) {
            payload.resize(random.uniform_int(300));
            for (auto& value : payload) {
                value = static_cast<std::uint8_t>(random());
            }
            fragments.push_back({static_cast<std::uint8_t>(random()), payload});
        }
        Packet out(40 * 600);
        const auto size = encode_mfp(header, fragments, out);
        ASSERT_TRUE(size.has_value());
        const auto view = MfpView::decode(out);
        ASSERT_TRUE(view.has_value()) << view.error().message;
        EXPECT_EQ(view->header(), header);
        EXPECT_EQ(view->bytes(), *size);
        std::size_t index = 0;
        for (const auto [type, payload] : *view) {
            ASSERT_EQ(type, fragments[index].type);
            ASSERT_TRUE(std::ranges::equal(payload, payloads[index++]));
        }
        EXPECT_EQ(index, fragments.size());
    }
}

TEST(Mfp, OfTheLhcbPackingFactorHasThreeBytesInFrontPerFragment) {
    EXPECT_EQ(mfp_overhead(30'000), 20 + 30'000 + 60'000);
    EXPECT_EQ(mfp_overhead(3), 32);  // 20, 3 padded to 4, 6 padded to 8
}

TEST(Mfp, RefusesPacketsCutOffAnywhere) {
    for (std::size_t size = 0; size < example_mfp.size(); ++size) {
        EXPECT_FALSE(MfpView::decode(std::span(example_mfp).first(size)).has_value()) << size;
    }
}

TEST(Mfp, ReportsErrorsInASentence) {
    const auto message = [](std::size_t at, std::uint8_t value) {
        Packet packet = example_mfp;
        packet[at] = value;
        return MfpView::decode(packet).error().message;
    };
    EXPECT_EQ(message(0, 0xcf), "no MFP: it begins with 0x40cf instead of 0x40ce");
    EXPECT_EQ(message(18, 17), "MFP of source 0x2801: align 17; expected 0 to 16");
    EXPECT_EQ(message(4, 0x33), "MFP of source 0x2801: packet size 51; its 3 fragments take 52");
    EXPECT_EQ(message(4, 0x35),
              "MFP of source 0x2801: packet size 53 with 3 fragments in 52 bytes; expected 32 at "
              "least, and not beyond the end");
    EXPECT_EQ(message(3, 0x80),
              "MFP of source 0x2801: packet size 52 with 32771 fragments in 52 bytes; expected "
              "98336 at least, and not beyond the end");
    Packet small(51);
    const std::vector<MfpFragment> one = {{1, std::span(example_mfp).first(32)}};
    EXPECT_EQ(encode_mfp({}, one, small).error().message, "MFP of 60 bytes; there is room for 51");
    EXPECT_EQ(encode_mfp({.align = 17}, one, small).error().message, "MFP align 17; give 0 to 16");
    const Packet long_payload(65'536);
    const std::vector<MfpFragment> long_one = {{1, long_payload}};
    EXPECT_EQ(encode_mfp({}, long_one, small).error().message,
              "MFP fragment of 65536 bytes; give at most 65535");
    const std::vector<MfpFragment> many(65'536);
    EXPECT_EQ(encode_mfp({}, many, small).error().message,
              "MFP of 65536 fragments; give at most 65535");
}

}  // namespace
}  // namespace daqloom::protocol

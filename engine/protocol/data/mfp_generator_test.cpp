#include "protocol/data/mfp_generator.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

namespace daqloom::protocol {
namespace {

using base::Bytes;
using Packet = std::vector<std::uint8_t>;

MfpGenerator generator(FragmentSizes kind, Bytes mean, MfpGeneratorConfig config) {
    config.sizes = std::make_shared<PatternSizes>(kind, mean, 1);
    return *MfpGenerator::make(config);
}

TEST(MfpGenerator, WritesTheWorkedExample) {
    // Source id 0, events 0 and 1, fragments of 5 bytes padded to 8. The hashes of splitmix64 with
    // seeds 0 and 1: 0x…397b1dcdaf and 0x…ec89025cc1.
    const Packet expected = {
        0xce, 0x40, 0x02, 0x00, 0x2c, 0x00, 0x00, 0x00,  // 2 fragments, 20 + 4 + 4 + 16 bytes
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // from event 0 on
        0x00, 0x00, 0x03, 0x03, 0x00, 0x00, 0x00, 0x00,  // source id 0, align 2^3, version 3; types
        0x05, 0x00, 0x05, 0x00,                          // sizes
        0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0x00, 0x00, 0x00,  //
        0xc1, 0x5c, 0x02, 0x89, 0xec, 0x00, 0x00, 0x00,
    };
    Packet out(60, 0xee);
    const auto stream = generator(FragmentSizes::fixed, 5, {.packing = 2, .align = 3});
    EXPECT_EQ(stream.generate(0, out), 44);
    out.resize(44);
    EXPECT_EQ(out, expected);
}

TEST(MfpGenerator, WritesTheBytesOfTheEncoder) {
    for (const auto align : std::initializer_list<std::uint8_t>{0, 1, 2, 6}) {
        const auto stream = generator(FragmentSizes::poisson, 20,
                                      {.source_id = 77, .packing = 101, .align = align});
        std::vector<Packet> payloads(101);
        std::vector<MfpFragment> fragments;
        for (std::uint64_t i = 0; i < 101; ++i) {
            payloads[i].resize(stream.size(5000 + i));
            fill_pattern(77, 5000 + i, payloads[i]);
            fragments.push_back({0, payloads[i]});
        }
        Packet expected(static_cast<std::size_t>(stream.largest()), 0xaa);
        Packet out(expected.size(), 0xaa);
        const auto size =
            encode_mfp({.event_id = 5000, .source_id = 77, .align = align}, fragments, expected);
        EXPECT_EQ(stream.generate(5000, out), *size);
        EXPECT_EQ(stream.bytes_of(5000), *size);
        EXPECT_EQ(out, expected);
        EXPECT_LE(*size, stream.largest());
    }
}

TEST(MfpGenerator, FailsWhereThereIsNoRoom) {
    const auto stream = generator(FragmentSizes::fixed, 5, {.packing = 2, .align = 3});
    Packet out(43);
    EXPECT_EQ(stream.generate(0, out).error().message, "MFP of 44 bytes; there is room for 43");
    EXPECT_EQ(stream.generate(0, std::span(out).first(10)).error().message,
              "MFP of 44 bytes; there is room for 10");
}

TEST(MfpGenerator, RefusesValuesBeyondAnMfp) {
    const auto message = [](MfpGeneratorConfig config) {
        return MfpGenerator::make(std::move(config)).error().message;
    };
    const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::fixed, 60'000, 1);
    EXPECT_EQ(message({.packing = 65'536, .sizes = sizes}),
              "MFPs of 65536 fragments: an MFP counts its fragments with 16 bits; give a packing "
              "of 1 to 65535");
    EXPECT_EQ(message({.packing = 0, .sizes = sizes}),
              "MFPs of 0 fragments: an MFP counts its fragments with 16 bits; give a packing of 1 "
              "to 65535");
    EXPECT_EQ(message({.align = 17, .sizes = sizes}), "MFP align 17; give 0 to 16");
    EXPECT_EQ(message({}), "MFPs of generated fragments without sizes; give a table of sizes");
    // Padded to 65 536 B, and 3 B of tables each: 20 + 65 536 + 131 072 − 2 + 65 535 · 65 536.
    EXPECT_EQ(message({.packing = 65'535, .align = 16, .sizes = sizes}),
              "MFPs of 65535 fragments of up to 60000 bytes can take 4295098388 bytes, and an MFP "
              "at most 4294967295; give a smaller packing or smaller fragments");
}

}  // namespace
}  // namespace daqloom::protocol

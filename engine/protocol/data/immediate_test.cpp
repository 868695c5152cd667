#include "protocol/data/immediate.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace daqloom::protocol {
namespace {

TEST(Immediate, HasEpochSlotAndStreamAtTheirBits) {
    // 5 << 26 = 0x14000000, 3 << 16 = 0x30000.
    EXPECT_EQ((Immediate{.epoch = 5, .slot = 3, .stream = 0x1234}).encode(), 0x14031234);
    EXPECT_EQ(Immediate::decode(0x14031234), (Immediate{.epoch = 5, .slot = 3, .stream = 0x1234}));
    EXPECT_EQ((Immediate{.epoch = 63, .slot = 1023, .stream = 65'535}).encode(), 0xffffffff);
}

TEST(Immediate, TakesNumbersBeyondItsBitsByTheirRest) {
    EXPECT_EQ((Immediate{.epoch = 64 + 5, .slot = 2048 + 3, .stream = 7}).encode(),
              (Immediate{.epoch = 5, .slot = 3, .stream = 7}).encode());
}

TEST(Immediate, ComesBackFromAnyBits) {
    base::RandomStream random(1, "bits");
    for (int i = 0; i < 1000; ++i) {
        const auto bits = static_cast<std::uint32_t>(random());
        ASSERT_EQ(Immediate::decode(bits).encode(), bits);
    }
}

TEST(TurnInSlot, IsTheOneOfTheNextThousandAndTwentyFour) {
    EXPECT_EQ(turn_in_slot(0, 0), 0);
    EXPECT_EQ(turn_in_slot(1023, 0), 1023);
    EXPECT_EQ(turn_in_slot(1023, 1023), 1023);
    EXPECT_EQ(turn_in_slot(0, 1023), 1024);
    EXPECT_EQ(turn_in_slot(4, 1024 * 1000 + 5), 1024 * 1001 + 4);
    for (const std::uint64_t oldest : {0ull, 1000ull, 123'456'789'012ull}) {
        for (std::uint64_t ahead = 0; ahead < Immediate::slots; ++ahead) {
            const auto slot = static_cast<std::uint32_t>((oldest + ahead) % Immediate::slots);
            ASSERT_EQ(turn_in_slot(slot, oldest), oldest + ahead);
        }
    }
}

}  // namespace
}  // namespace daqloom::protocol

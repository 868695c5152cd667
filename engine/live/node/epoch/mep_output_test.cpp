#include "live/node/epoch/mep_output.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "live/memory/buffer_by_hand_test.hpp"

namespace daqloom::live {
namespace {

class MepOutputTest : public ::testing::Test {
  protected:
    static std::vector<std::uint64_t> taken_back(MepOutput& output) {
        std::vector<std::uint64_t> turns;
        output.take_back([&](std::uint64_t turn) { turns.push_back(turn); });
        return turns;
    }

    Buffer buffer_ = buffer_of(4096, 2);
};

TEST_F(MepOutputTest, MepsComeBackWhenTheConsumerIsThroughWithThem) {
    MepOutput output(buffer_);
    EXPECT_TRUE(output.is_empty());
    output.put(7, 700, 64, 128);
    BufferReader consumer(buffer_);
    const auto piece = consumer.next();
    ASSERT_TRUE(piece);
    EXPECT_EQ(piece->tag, 700);
    EXPECT_EQ(piece->bytes.data(), buffer_.area().bytes().data() + 64);
    EXPECT_EQ(piece->bytes.size(), 128);
    EXPECT_TRUE(taken_back(output).empty());
    consumer.acknowledge();
    EXPECT_EQ(taken_back(output), (std::vector<std::uint64_t>{7}));
    EXPECT_TRUE(output.is_empty());
}

TEST_F(MepOutputTest, AMepWithoutDescriptorWaitsForOne) {
    MepOutput output(buffer_);
    for (std::uint64_t turn = 0; turn < 5; ++turn) {
        output.put(turn, turn, static_cast<base::Bytes>(64 * turn), 64);
    }
    BufferReader consumer(buffer_);
    std::vector<std::uint64_t> turns;
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(consumer.next()) << i;
        consumer.acknowledge();
        output.take_back([&](std::uint64_t turn) { turns.push_back(turn); });
    }
    EXPECT_EQ(turns, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
    EXPECT_TRUE(output.is_empty());
}

TEST_F(MepOutputTest, MepsOfAnEarlierEpochDoNotComeBack) {
    {
        MepOutput earlier(buffer_);
        earlier.put(1, 1, 0, 64);
    }
    MepOutput output(buffer_);
    output.put(0, 9, 64, 64);
    BufferReader consumer(buffer_);
    ASSERT_TRUE(consumer.next());
    consumer.acknowledge();
    EXPECT_TRUE(taken_back(output).empty());
    ASSERT_TRUE(consumer.next());
    consumer.acknowledge();
    EXPECT_EQ(taken_back(output), (std::vector<std::uint64_t>{0}));
}

TEST_F(MepOutputTest, AConsumerThatHasTakenMoreThanThereIsHasTakenNothing) {
    const HostileControl control(buffer_);
    MepOutput output(buffer_);
    output.put(0, 0, 0, 64);
    for (const std::uint64_t nonsense :
         {std::uint64_t{2}, std::uint64_t{1'000'000}, ~std::uint64_t{0}}) {
        control.acknowledged() = nonsense;
        EXPECT_TRUE(taken_back(output).empty());
    }
    control.acknowledged() = 1;
    EXPECT_EQ(taken_back(output), (std::vector<std::uint64_t>{0}));
}

}  // namespace
}  // namespace daqloom::live

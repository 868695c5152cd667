#include "live/node/epoch/stream_intake.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "live/memory/buffer_by_hand_test.hpp"

namespace daqloom::live {
namespace {

/// A stream's buffer, into which tests put MFPs of one fragment.
class StreamIntakeTest : public ::testing::Test {
  protected:
    void put(std::uint64_t tag, std::vector<std::uint8_t> payload) {
        std::vector<std::uint8_t> mfp(1024);
        const protocol::MfpFragment fragment{.type = 0, .payload = payload};
        const auto bytes = protocol::encode_mfp({.event_id = tag}, {&fragment, 1}, mfp);
        ASSERT_TRUE(bytes);
        mfp.resize(static_cast<std::size_t>(*bytes));
        put_bytes(tag, mfp);
    }
    void put_bytes(std::uint64_t tag, const std::vector<std::uint8_t>& bytes) {
        BufferWriter writer(buffer_);
        const auto room = writer.reserve(static_cast<base::Bytes>(bytes.size()));
        ASSERT_TRUE(room);
        std::ranges::transform(bytes, room->begin(), [](auto byte) { return std::byte{byte}; });
        writer.commit(tag, static_cast<base::Bytes>(bytes.size()));
    }
    [[nodiscard]] std::uint64_t acknowledged() { return BufferWriter(buffer_).acknowledged(); }
    static base::Bytes take(StreamIntake& intake) {
        EXPECT_TRUE(intake.has_next());
        return intake.take();
    }
    /// Takes all MFPs that have arrived, and returns their sizes.
    static std::vector<base::Bytes> take_all(StreamIntake& intake) {
        std::vector<base::Bytes> sizes;
        while (intake.has_next()) {
            sizes.push_back(intake.take());
        }
        return sizes;
    }

    Buffer buffer_ = buffer_of(1 << 16, 16);
    NodeCounters counters_;
};

/// Header of 20 B, then one type, one size and one fragment, each padded to 4 B.
constexpr base::Bytes kMfp = 20 + 4 + 4 + 4;

TEST_F(StreamIntakeTest, TakesMfpsInOrderAndGivesThemBackInOrder) {
    StreamIntake intake(buffer_, 100, 4, counters_);
    EXPECT_FALSE(intake.has_next());
    put(100, {1, 2, 3});
    put(101, {4});
    EXPECT_EQ(take(intake), kMfp);
    EXPECT_EQ(take(intake), kMfp) << "padded to 4 B";
    EXPECT_EQ(intake.bytes(0)[kMfp - 4], std::byte{1});
    EXPECT_EQ(intake.bytes(1)[kMfp - 4], std::byte{4});
    intake.give_back();
    EXPECT_EQ(acknowledged(), 1);
    intake.give_back();
    EXPECT_EQ(acknowledged(), 2);
    EXPECT_EQ(counters_.mfp_bytes_taken.get(), 2 * kMfp);
}

TEST_F(StreamIntakeTest, TakesNoMoreThanItsWindow) {
    StreamIntake intake(buffer_, 0, 2, counters_);
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        put(tag, {1});
    }
    take(intake);
    take(intake);
    EXPECT_FALSE(intake.has_next());
    intake.give_back();
    EXPECT_TRUE(intake.has_next());
}

TEST_F(StreamIntakeTest, AnMfpThatTheSourceLeftOutHasNoBytes) {
    StreamIntake intake(buffer_, 0, 8, counters_);
    put(0, {1});
    put(3, {2});
    EXPECT_EQ(take_all(intake), (std::vector<base::Bytes>{kMfp, 0, 0, kMfp}));
    EXPECT_EQ(counters_.mfps_absent.get(), 2);
    for (int i = 0; i < 3; ++i) {
        intake.give_back();
    }
    EXPECT_EQ(acknowledged(), 1) << "those of no bytes are no pieces of the buffer";
    intake.give_back();
    EXPECT_EQ(acknowledged(), 2);
}

TEST_F(StreamIntakeTest, FreesFinishedMfpsOfAnEarlierEpochAtOnce) {
    put(5, {1});
    put(6, {1});
    put(7, {9});
    StreamIntake intake(buffer_, 7, 8, counters_);
    ASSERT_TRUE(intake.has_next());
    EXPECT_EQ(acknowledged(), 2);
    EXPECT_EQ(counters_.mfps_stale.get(), 2);
    EXPECT_EQ(intake.take(), kMfp);
    EXPECT_EQ(intake.bytes(0)[kMfp - 4], std::byte{9});
}

TEST_F(StreamIntakeTest, ANewEpochReadsMfpsAgainThatWereNotFreed) {
    put(0, {1});
    put(1, {2});
    {
        StreamIntake intake(buffer_, 0, 8, counters_);
        take(intake);
        take(intake);
    }
    StreamIntake intake(buffer_, 1, 8, counters_);
    take(intake);
    EXPECT_EQ(intake.bytes(0)[kMfp - 4], std::byte{2});
    EXPECT_FALSE(intake.has_next());
}

TEST_F(StreamIntakeTest, UselessPiecesAreFreedWithoutASuccessor) {
    StreamIntake intake(buffer_, 0, 8, counters_);
    put(0, {1});
    take(intake);
    put(0, {1});
    put(0, {1});
    EXPECT_FALSE(intake.has_next());
    intake.give_back();
    EXPECT_FALSE(intake.has_next());
    EXPECT_EQ(acknowledged(), 3);
}

TEST_F(StreamIntakeTest, InvalidMfpsAreCountedAndLeftOut) {
    StreamIntake intake(buffer_, 0, 8, counters_);
    put(0, {1});
    put_bytes(1, {0xce, 0x40, 1, 0, 99, 0, 0, 0});  // too short
    put_bytes(2, std::vector<std::uint8_t>(64));    // no magic
    put(0, {1});                                    // a tag that was there
    put(3, {2});
    EXPECT_EQ(take_all(intake), (std::vector<base::Bytes>{kMfp, 0, 0, kMfp}));
    EXPECT_EQ(counters_.mfps_malformed.get(), 2);
    EXPECT_EQ(counters_.mfps_stale.get(), 1);
    EXPECT_EQ(acknowledged(), 0) << "in order: the first is still needed";
    for (int i = 0; i < 4; ++i) {
        intake.give_back();
    }
    EXPECT_EQ(acknowledged(), 5);
}

TEST_F(StreamIntakeTest, AStreamWhoseDescriptorsMakeNoSenseIsCountedOnce) {
    StreamIntake intake(buffer_, 0, 8, counters_);
    put(0, {1});
    ASSERT_TRUE(BufferWriter(buffer_).put(1, -1, kMfp));
    take(intake);
    EXPECT_EQ(counters_.streams_broken.get(), 0);
    EXPECT_FALSE(intake.has_next());
    EXPECT_FALSE(intake.has_next());
    EXPECT_EQ(counters_.streams_broken.get(), 1);
}

}  // namespace
}  // namespace daqloom::live

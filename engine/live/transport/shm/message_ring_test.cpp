#include "live/transport/shm/message_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace daqloom::live {
namespace {

using Put = MessageRingWriter::Put;
using Got = MessageRingReader::Got;

constexpr std::size_t kCapacity = 1024;
constexpr std::size_t kMost = 200;

class AMessageRing : public testing::Test {
  protected:
    struct alignas(64) Memory {
        std::byte bytes[static_cast<std::size_t>(message_ring_bytes(kCapacity))] = {};
    };
    Memory memory;
    MessageRingWriter writer{memory.bytes};
    MessageRingReader reader{memory.bytes, kMost};
    MessageRingReader::Record record;

    MessageRingHeader& header() { return *reinterpret_cast<MessageRingHeader*>(memory.bytes); }
    /// Result of reading a record that a hostile writer could have put there.
    Got read_forged(std::uint32_t length, std::uint64_t written) {
        std::memcpy(memory.bytes + sizeof(MessageRingHeader), &length, sizeof length);
        header().written = written;
        return MessageRingReader(memory.bytes, kMost).next(record);
    }
};

std::vector<std::byte> counting(std::size_t bytes, std::uint64_t first) {
    std::vector<std::byte> made(bytes);
    std::ranges::generate(made, [&] { return static_cast<std::byte>(first++); });
    return made;
}

TEST_F(AMessageRing, GivesEveryRecordBackAsItWasManyTimesAround) {
    for (std::uint32_t i = 0; i < 5000; ++i) {
        const auto bytes = counting(i % (kMost + 1), i);
        ASSERT_EQ(writer.put(i, bytes), Put::done);
        ASSERT_EQ(reader.next(record), Got::record);
        EXPECT_EQ(record.kind, i);
        EXPECT_TRUE(std::ranges::equal(record.bytes, bytes));
        EXPECT_EQ(reader.next(record), Got::nothing);
        EXPECT_TRUE(reader.is_empty());
        EXPECT_FALSE(reader.release());
    }
}

TEST_F(AMessageRing, HoldsAsManyRecordsAsFitAndRefusesTheNext) {
    const auto bytes = counting(56, 0);  // with its 8 bytes of length and kind: 64
    for (std::size_t i = 0; i < kCapacity / 64; ++i) {
        EXPECT_EQ(writer.put(1, bytes), Put::done);
    }
    EXPECT_EQ(writer.put(1, bytes), Put::no_room);
    EXPECT_EQ(writer.put(1, {}), Put::no_room);
    for (std::size_t i = 0; i < kCapacity / 64; ++i) {
        ASSERT_EQ(reader.next(record), Got::record);
        EXPECT_TRUE(std::ranges::equal(record.bytes, bytes));
    }
    EXPECT_EQ(reader.next(record), Got::nothing);
}

TEST_F(AMessageRing, RemindsTheReaderOfAWriterThatWaitsUntilThereIsRoomForItsRecord) {
    const auto small = counting(56, 0);
    while (writer.put(1, small) == Put::done) {
    }
    EXPECT_EQ(writer.put(2, counting(120, 0)), Put::no_room);  // needs 128
    EXPECT_FALSE(writer.has_room());

    ASSERT_EQ(reader.next(record), Got::record);
    EXPECT_TRUE(reader.release());
    EXPECT_FALSE(reader.release()) << "notified twice";
    EXPECT_FALSE(writer.has_room()) << "64 are free";

    ASSERT_EQ(reader.next(record), Got::record);
    EXPECT_TRUE(reader.release()) << "the writer still waits";
    EXPECT_TRUE(writer.has_room());
    EXPECT_EQ(writer.put(2, counting(120, 0)), Put::done);
    EXPECT_FALSE(reader.release());
}

TEST_F(AMessageRing, IsBrokenForTheReaderWhenALengthIsImpossibleOrMoreIsThereThanFits) {
    EXPECT_EQ(read_forged(kMost + 1, 512), Got::broken);
    EXPECT_EQ(read_forged(0xffffffff, 512), Got::broken);
    EXPECT_EQ(read_forged(57, 64), Got::broken) << "it would end at 72";
    EXPECT_EQ(read_forged(56, 64), Got::record);
    EXPECT_EQ(read_forged(0, kCapacity), Got::record);
    EXPECT_EQ(read_forged(0, kCapacity + 1), Got::broken);
    EXPECT_EQ(read_forged(0, ~std::uint64_t{0}), Got::broken);
    EXPECT_EQ(read_forged(0, 7), Got::broken) << "not even a length";
}

TEST_F(AMessageRing, IsBrokenForTheReaderWhenTheWriterGoesBack) {
    ASSERT_EQ(writer.put(1, counting(56, 0)), Put::done);
    ASSERT_EQ(reader.next(record), Got::record);
    header().written = 0;
    EXPECT_EQ(reader.next(record), Got::broken);
}

TEST_F(AMessageRing, IsBrokenForTheWriterWhenMoreWasReadThanWritten) {
    while (writer.put(1, counting(56, 0)) == Put::done) {
    }
    header().read = 100'000;
    EXPECT_TRUE(writer.has_room()) << "so that the next put finds it out";
    EXPECT_EQ(writer.put(1, counting(56, 0)), Put::broken);
}

TEST_F(AMessageRing, CarriesRecordsFromOneThreadToAnother) {
    constexpr std::uint32_t kRecords = 100'000;
    const auto bytes_of = [](std::uint32_t i) { return counting(i * 7 % 64, i); };
    std::thread thread([&] {
        for (std::uint32_t i = 0; i < kRecords;) {
            if (writer.put(i, bytes_of(i)) == Put::done) {
                ++i;
            } else {
                std::this_thread::yield();
            }
        }
    });
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < kRecords;) {
        if (reader.next(record) == Got::record) {
            wrong += record.kind == i && std::ranges::equal(record.bytes, bytes_of(i)) ? 0 : 1;
            ++i;
        } else {
            static_cast<void>(reader.release());
            std::this_thread::yield();
        }
    }
    EXPECT_EQ(wrong, 0U);
    thread.join();
}

}  // namespace
}  // namespace daqloom::live

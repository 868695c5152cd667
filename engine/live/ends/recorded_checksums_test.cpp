#include "live/ends/recorded_checksums.hpp"

#include "live/ends/check_sink.hpp"
#include "live/ends/packets_by_hand_test.hpp"
#include "protocol/data/little_endian.hpp"

namespace daqloom::live {
namespace {

using protocol::DataFault;

constexpr std::uint16_t kFragments = 3;

/// An MFP of arbitrary bytes, which is not generated data.
Packet any_mfp(std::uint16_t source_id, std::uint64_t number) {
    const Packet payload(5 + number % 7, static_cast<std::uint8_t>(number * 31 + source_id));
    const std::vector<protocol::MfpFragment> fragments(kFragments, {.type = 9, .payload = payload});
    Packet mfp(1'000);
    const auto bytes = protocol::encode_mfp(
        {.event_id = number * kFragments, .source_id = source_id}, fragments, mfp);
    EXPECT_TRUE(bytes);
    mfp.resize(static_cast<std::size_t>(*bytes));
    return mfp;
}

/// The MFP as a replay sends it, with a new number.
Packet replayed(Packet mfp, std::uint64_t number) {
    protocol::put_number<std::uint64_t>(mfp, 8, number * kFragments);
    return mfp;
}

/// Recording of MFPs 4 to 8 of two streams. The first stream has two files and lacks MFP 7.
class RecordedChecksumsTest : public FolderTest {
  protected:
    void SetUp() override {
        record("unit-0-source-0.mfp", 0, {4, 6, 8});
        record("unit-1-source-0.mfp", 0, {5, 6});
        record("unit-0-source-1.mfp", 1, {4, 5, 6, 7, 8});
    }

    void record(const std::string& name, std::uint16_t source_id,
                const std::vector<std::uint64_t>& numbers) const {
        std::vector<Packet> mfps;
        for (const std::uint64_t number : numbers) {
            mfps.push_back(any_mfp(source_id, number));
        }
        FolderTest::record(name, mfps);
    }
    [[nodiscard]] RecordedChecksums checksums(base::Bytes most_read = 1'000'000) const {
        return {base::value_of(Recording::open(folder_, kFragments)), kFragments, most_read};
    }
    /// The MEP with this number, in a replay that repeats MFPs 4 to 8.
    static Packet replayed_mep(std::uint64_t number) {
        const std::uint64_t recorded = 4 + number % 5;
        return mep_of(number, kFragments,
                      {recorded == 7 ? Packet() : replayed(any_mfp(0, recorded), number),
                       replayed(any_mfp(1, recorded), number)});
    }
};

TEST_F(RecordedChecksumsTest, AreThoseOfTheReplayedPacketsInEveryLap) {
    const auto recorded = checksums();
    for (std::uint64_t number = 0; number < 100; ++number) {
        const std::uint32_t mfps = number % 5 == 3 ? 1 : 2;
        const auto found = recorded.check_mep(2, replayed_mep(number));
        EXPECT_EQ(found.fault, DataFault::none) << number;
        EXPECT_EQ(found.mfps, mfps);
        EXPECT_EQ(found.absent, 2 - mfps);
        EXPECT_EQ(found.unknown, 0U);
        EXPECT_EQ(found.fragments, mfps * kFragments);
        EXPECT_EQ(found.fragment_bytes,
                  static_cast<base::Bytes>(mfps * kFragments * (5 + (4 + number % 5) % 7)));
    }
}

TEST_F(RecordedChecksumsTest, DifferForAnyChangedByteOfAPacket) {
    const auto recorded = checksums();
    constexpr std::uint64_t number = 7;
    const Packet right = replayed_mep(number);
    const auto entry = protocol::MepView::decode(right)->entry(1);
    for (base::Bytes at = 0; at < entry.bytes; ++at) {
        Packet damaged = right;
        damaged[static_cast<std::size_t>(entry.offset + at)] ^= 4;
        EXPECT_NE(recorded.check_mep(2, damaged).fault, DataFault::none) << at;
    }
}

TEST_F(RecordedChecksumsTest, DifferForAnyPacketButTheOneOfTheNumber) {
    const auto recorded = checksums();
    const auto fault = [&](std::uint64_t number, const std::vector<Packet>& mfps) {
        return recorded.check_mep(2, mep_of(number, kFragments, mfps)).fault;
    };
    EXPECT_EQ(fault(5, {replayed(any_mfp(0, 4), 5)}), DataFault::none);
    EXPECT_EQ(fault(5, {replayed(any_mfp(0, 5), 5)}), DataFault::pattern) << "of the next number";
    EXPECT_EQ(fault(3, {replayed(any_mfp(0, 7), 3)}), DataFault::pattern) << "not recorded";
    EXPECT_EQ(fault(5, {replayed(any_mfp(0, 4), 6)}), DataFault::event);
    EXPECT_EQ(fault(5, {replayed(any_mfp(1, 4), 5)}), DataFault::source_id);
    EXPECT_EQ(fault(5, {Packet(), Packet(), replayed(any_mfp(2, 4), 5)}), DataFault::source_id);
    EXPECT_EQ(recorded.check_mep(2, Packet(10)).fault, DataFault::malformed_mep);
}

TEST_F(RecordedChecksumsTest, AreUnknownForFilesThatAreNotHereOrWereNotRead) {
    const auto unknown = [](const RecordedChecksums& recorded, std::uint64_t number) {
        const auto found = recorded.check_mep(2, replayed_mep(number));
        EXPECT_EQ(found.fault, DataFault::none);
        EXPECT_EQ(found.absent, number == 3 ? 1U : 0U);
        return found.unknown;
    };
    std::filesystem::remove(folder_ / "unit-1-source-0.mfp.index");  // 5 and 6
    EXPECT_EQ(unknown(checksums(), 1), 0U) << "the file was read";
    EXPECT_EQ(unknown(checksums(10), 0), 0U);
    EXPECT_EQ(unknown(checksums(10), 1), 1U);
    EXPECT_EQ(unknown(checksums(10), 2), 0U) << "the other file has it";
    std::filesystem::remove(folder_ / "unit-0-source-1.mfp");
    EXPECT_EQ(unknown(checksums(), 0), 1U);
    EXPECT_EQ(unknown(checksums(), 3), 1U);
    EXPECT_EQ(unknown(RecordedChecksums(kFragments), 0), 2U);
    Packet malformed = replayed_mep(0);
    malformed[static_cast<std::size_t>(protocol::mep_overhead(2))] ^= 1;
    EXPECT_EQ(RecordedChecksums(kFragments).check_mep(2, malformed).fault,
              DataFault::malformed_mfp);
}

TEST_F(RecordedChecksumsTest, AreCountedByASinkAsRightWrongOrUnchecked) {
    std::filesystem::remove(folder_ / "unit-1-source-0.mfp.index");  // 5 and 6
    CheckCounters counters;
    const auto sink =
        check_replayed_meps(std::make_shared<RecordedChecksums>(checksums(10)), 2, counters);
    for (std::uint64_t number = 0; number < 10; ++number) {
        sink->consume(number, replayed_mep(number));
    }
    EXPECT_EQ(counters.right, 8U);
    EXPECT_EQ(counters.unchecked, 2U);
    EXPECT_EQ(counters.wrong_number, 0U);
    sink->consume(10, replayed_mep(15));
    EXPECT_EQ(counters.wrong_number, 1U);
    sink->consume(10, mep_of(10, kFragments, {replayed(any_mfp(0, 8), 10)}));
    EXPECT_EQ(counters.wrong[static_cast<std::size_t>(DataFault::pattern)], 1U);
    EXPECT_EQ(counters.right, 8U);
}

}  // namespace
}  // namespace daqloom::live

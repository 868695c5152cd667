#include "protocol/data/mep_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using Memory = std::vector<std::uint8_t>;

constexpr std::uint64_t first_event = 9000;

/// MEPs of the three streams 3, 4 and 8, with 10 events in each MEP.
class MepCheck : public testing::Test {
  protected:
    MepCheck() {
        const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::poisson, 21, 1);
        for (const std::uint16_t id : std::initializer_list<std::uint16_t>{3, 4, 8}) {
            streams_.push_back(
                *MfpGenerator::make({.source_id = id, .packing = 10, .sizes = sizes}));
        }
        mep_ = built();
    }

    /// The MEP that a builder unit would build. Gaps between MFPs hold earlier bytes.
    Memory built() {
        std::vector<Bytes> sizes;
        for (const MfpGenerator& stream : streams_) {
            sizes.push_back(stream.bytes_of(first_event));
        }
        std::vector<Bytes> offsets(sizes.size());
        const MepLayout layout{.header = mep_overhead(3), .alignment = 64};
        Memory mep(static_cast<std::size_t>(lay_out(layout, sizes, offsets)), 0xee);
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            entries_.push_back(
                {.offset = offsets[i], .bytes = sizes[i], .source_id = streams_[i].source_id()});
            EXPECT_TRUE(streams_[i].generate(
                first_event, std::span(mep).subspan(static_cast<std::size_t>(offsets[i]))));
        }
        encode(mep);
        return mep;
    }
    void encode(Memory& mep) {
        const MepHeader header{.mep = MepId{900}, .event_id = first_event, .events = 10};
        EXPECT_TRUE(encode_mep(header, entries_, mep));
    }
    [[nodiscard]] std::size_t at(std::size_t stream, std::size_t byte) const {
        return static_cast<std::size_t>(entries_[stream].offset) + byte;
    }
    DataCheck with(std::size_t at, std::uint8_t flip) {
        mep_[at] ^= flip;
        const DataCheck check = check_mep(streams_, mep_);
        mep_[at] ^= flip;
        return check;
    }

    std::vector<MfpGenerator> streams_;
    std::vector<MepEntry> entries_;
    Memory mep_;
};

TEST_F(MepCheck, CountsCorrectFragments) {
    const DataCheck check = check_mep(streams_, mep_);
    EXPECT_EQ(check.fault, DataFault::none);
    EXPECT_EQ(check.mfps, 3);
    EXPECT_EQ(check.absent, 0);
    EXPECT_EQ(check.fragments, 30);
    Bytes bytes = 0;
    for (const MfpGenerator& stream : streams_) {
        for (std::uint64_t i = 0; i < 10; ++i) {
            bytes += stream.size(first_event + i);
        }
    }
    EXPECT_EQ(check.fragment_bytes, bytes);
}

TEST_F(MepCheck, FindsEveryFlippedBitOfEveryMfp) {
    for (const MepEntry& entry : entries_) {
        for (Bytes byte = 0; byte < entry.bytes; ++byte) {
            for (int bit = 0; bit < 8; ++bit) {
                const DataCheck check = with(static_cast<std::size_t>(entry.offset + byte),
                                             static_cast<std::uint8_t>(1 << bit));
                ASSERT_NE(check.fault, DataFault::none) << entry.source_id << " " << byte;
                ASSERT_EQ(check.source_id, entry.source_id);
            }
        }
    }
}

TEST_F(MepCheck, NamesTheFaultItsPlaceSourceIdAndEvent) {
    const auto expect = [&](std::size_t byte, std::uint8_t flip, DataFault fault, Bytes offset,
                            std::uint64_t event) {
        const DataCheck check = with(at(1, byte), flip);
        EXPECT_EQ(name_of(check.fault), name_of(fault)) << byte;
        EXPECT_EQ(check.offset, entries_[1].offset + offset) << byte;
        EXPECT_EQ(check.source_id, 4) << byte;
        EXPECT_EQ(check.event, event) << byte;
    };
    expect(0, 1, DataFault::malformed_mfp, 0, first_event);
    expect(2, 1, DataFault::malformed_mfp, 0, first_event);  // a count that does not fit the size
    expect(8, 1, DataFault::event, 8, first_event);
    expect(17, 1, DataFault::source_id, 16, first_event);
    expect(19, 1, DataFault::layout, 19, first_event);
    expect(20 + 6, 1, DataFault::layout, 20 + 6, first_event + 6);
    expect(30, 1, DataFault::padding, 30, first_event);  // types are padded from 10 to 12 bytes
    // 20 + 12 + 20 bytes (header, types, sizes) precede the fragments, each padded to 4 bytes.
    std::size_t third = 52;
    for (const std::uint64_t i : {0, 1}) {
        third += (streams_[1].size(first_event + i) + 3u) & ~3u;
    }
    expect(third + 5, 0x80, DataFault::pattern, static_cast<Bytes>(third) + 5, first_event + 2);
}

TEST_F(MepCheck, FindsSizesThatAreExchangedWithinTheirPadding) {
    // A size one byte larger, with less padding: the MFP is well-formed, but the byte is zero.
    std::size_t event = 0;
    while (streams_[0].size(first_event + event) % 4 == 0) {
        ++event;
    }
    const std::size_t size_at = at(0, 32 + 2 * event);
    const auto size = mep_[size_at];
    const DataCheck check = with(size_at, static_cast<std::uint8_t>(size ^ (size + 1)));
    EXPECT_EQ(check.fault, DataFault::size);
    EXPECT_EQ(check.event, first_event + event);
}

TEST_F(MepCheck, FindsAnMfpOfOtherEventsOrOfAnotherStream) {
    const auto copy = mep_;
    ASSERT_TRUE(streams_[2].generate(first_event + 10, std::span(mep_).subspan(at(2, 0))));
    EXPECT_NE(check_mep(streams_, mep_).fault, DataFault::none);
    mep_ = copy;
    entries_[1].source_id = 5;
    encode(mep_);
    EXPECT_EQ(check_mep(streams_, mep_).fault, DataFault::source_id);  // nobody's
    entries_[1].source_id = 3;
    encode(mep_);
    EXPECT_EQ(check_mep(streams_, mep_).fault, DataFault::source_id);  // twice
    EXPECT_EQ(check_mep(streams_, mep_).offset, 40 + 16 + 12);
    entries_[0].source_id = 4;
    encode(mep_);
    EXPECT_EQ(check_mep(streams_, mep_).fault, DataFault::source_id);  // another's
}

TEST_F(MepCheck, FindsAMepOfOtherEvents) {
    const DataCheck check = with(16, 1);
    EXPECT_EQ(check.fault, DataFault::event);
    EXPECT_EQ(with(24, 1).fault, DataFault::count);
    EXPECT_EQ(with(24, 1).offset, 24);
    EXPECT_EQ(with(0, 1).fault, DataFault::malformed_mep);
}

TEST_F(MepCheck, TakesMissingEmptyAndUnlistedStreamsAsAbsent) {
    entries_[1].state = MepState::missing;
    encode(mep_);
    mep_[at(1, 60)] ^= 1;  // what lies in its place does not matter
    const DataCheck check = check_mep(streams_, mep_);
    EXPECT_EQ(check.fault, DataFault::none);
    EXPECT_EQ(check.mfps, 2);
    EXPECT_EQ(check.absent, 1);
    streams_.push_back(
        *MfpGenerator::make({.source_id = 9,
                             .packing = 10,
                             .sizes = std::make_shared<PatternSizes>(FragmentSizes::fixed, 1, 1)}));
    EXPECT_EQ(check_mep(streams_, mep_).absent, 2);
}

TEST(MfpCheck, TakesOnlyAnMfpThatFillsItsPlace) {
    const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::fixed, 8, 1);
    const auto stream = *MfpGenerator::make({.packing = 2, .sizes = sizes});
    Memory memory(100);
    const auto bytes = *stream.generate(5, memory);
    EXPECT_EQ(check_mfp(stream, 5, memory).fault, DataFault::malformed_mfp);
    memory.resize(static_cast<std::size_t>(bytes));
    EXPECT_EQ(check_mfp(stream, 5, memory).fault, DataFault::none);
    EXPECT_EQ(check_mfp(stream, 6, memory).fault, DataFault::event);
    EXPECT_EQ(check_mfp(stream, 5, std::span(memory).first(0)).fault, DataFault::malformed_mfp);
}

TEST(PatternScan, RecognisesGeneratedFragmentsAndFindsEveryFlippedBitInThem) {
    const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::fixed, 9, 1);
    const auto stream = *MfpGenerator::make({.source_id = 6, .packing = 4, .sizes = sizes});
    Memory memory(20 + 4 + 8 + 4 * 12);
    ASSERT_EQ(stream.generate(50, memory), 80);
    EXPECT_EQ(scan_pattern(memory).fault, DataFault::none);
    EXPECT_EQ(scan_pattern(memory).recognised, 4);
    for (std::size_t at = 32; at < 80; ++at) {
        memory[at] ^= 0x10;
        const PatternScan scan = scan_pattern(memory);
        const bool in_padding = (at - 32) % 12 >= 9;
        EXPECT_EQ(scan.fault, in_padding ? DataFault::padding : DataFault::pattern);
        EXPECT_EQ(scan.offset, at);
        EXPECT_EQ(scan.event, 50 + (at - 32) / 12);
        EXPECT_EQ(scan.recognised, in_padding ? 4 : 3);
        memory[at] ^= 0x10;
    }
    memory[24] = 10;  // a byte of padding taken for one of the fragment
    EXPECT_EQ(scan_pattern(memory).fault, DataFault::pattern);
    memory[24] = 8;  // a byte of the fragment taken for padding
    EXPECT_NE(scan_pattern(memory).fault, DataFault::none);
    EXPECT_EQ(scan_pattern(std::span(memory).first(40)).fault, DataFault::malformed_mfp);
}

TEST(MfpCheck, HasANameForEveryFault) {
    std::vector<std::string_view> names;
    for (int fault = 0; fault <= static_cast<int>(DataFault::padding); ++fault) {
        const std::string_view name = name_of(static_cast<DataFault>(fault));
        EXPECT_NE(name, "unknown");
        EXPECT_EQ(std::ranges::count(names, name), 0);
        names.push_back(name);
    }
}

}  // namespace
}  // namespace daqloom::protocol

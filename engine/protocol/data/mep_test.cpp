#include "protocol/data/mep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected_test.hpp"
#include "base/random.hpp"
#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using Memory = std::vector<std::uint8_t>;

/// MEP 7 of three events from 0x1000 on: source 0x2801 with `ABCDE` at offset 88, source 0x2802
/// missing, with 8 bytes reserved for it at 96, source 0x2803 empty.
const Memory example_mep = {
    0x4d, 0x45, 0x50, 0x31, 0x03, 0x00, 0x00, 0x00,  // "MEP1", 3 streams
    0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // number 7
    0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // first event 0x1000
    0x03, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,  // 3 events, incomplete
    0x68, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // 104 bytes
    0x58, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // at 88
    0x05, 0x00, 0x00, 0x00, 0x01, 0x28, 0x00, 0x00,  // 5 bytes of 0x2801, complete
    0x60, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // at 96
    0x08, 0x00, 0x00, 0x00, 0x02, 0x28, 0x01, 0x00,  // 8 bytes of 0x2802, missing
    0x68, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // at 104
    0x00, 0x00, 0x00, 0x00, 0x03, 0x28, 0x02, 0x00,  // nothing of 0x2803
    'A',  'B',  'C',  'D',  'E',  0xee, 0xee, 0xee,  // the MFP, and what lay there before
    0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee,
};
const MepHeader header_of_example_mep{.mep = MepId{7}, .event_id = 0x1000, .events = 3};
const std::vector<MepEntry> entries_of_example = {
    {.offset = 88, .bytes = 5, .source_id = 0x2801, .state = MepState::complete},
    {.offset = 96, .bytes = 8, .source_id = 0x2802, .state = MepState::missing},
    {.offset = 104, .bytes = 0, .source_id = 0x2803, .state = MepState::empty}};

TEST(Mep, EncodesTheWorkedExampleInFrontOfItsMfps) {
    Memory mep(104, 0xee);
    std::ranges::copy(std::string_view("ABCDE"), mep.begin() + 88);
    ASSERT_TRUE(encode_mep(header_of_example_mep, entries_of_example, mep).has_value());
    EXPECT_EQ(mep, example_mep);
}

TEST(Mep, DecodesTheWorkedExample) {
    const auto view = MepView::decode(example_mep);
    ASSERT_TRUE(view.has_value()) << view.error().message;
    EXPECT_EQ(view->header(), header_of_example_mep);
    EXPECT_FALSE(view->is_complete());
    EXPECT_TRUE(lacks_mfps(example_mep));
    EXPECT_FALSE(lacks_mfps(std::span(example_mep).first(39))) << "no header";
    ASSERT_EQ(view->streams(), 3);
    for (std::uint32_t stream = 0; stream < 3; ++stream) {
        EXPECT_EQ(view->entry(stream), entries_of_example[stream]);
    }
    const auto mfp = view->mfp(0);
    EXPECT_EQ(std::string(mfp.begin(), mfp.end()), "ABCDE");
    EXPECT_TRUE(view->mfp(1).empty());
    EXPECT_TRUE(view->mfp(2).empty());
}

TEST(Mep, HasItsSizeInItsHeader) {
    EXPECT_EQ(mep_size(std::span(example_mep).first(40)), 104);
    EXPECT_EQ(mep_size(std::span(example_mep).first(39)).error().message,
              "MEP cut off: 39 bytes, and its header takes 40");
    Memory empty(40);
    ASSERT_TRUE(encode_mep({}, {}, empty).has_value());
    EXPECT_EQ(MepView::decode(empty)->streams(), 0);
}

TEST(Mep, IsCompleteIfNothingIsMissing) {
    auto entries = entries_of_example;
    entries[1].state = MepState::complete;
    Memory mep(104);
    ASSERT_TRUE(encode_mep(header_of_example_mep, entries, mep).has_value());
    EXPECT_TRUE(MepView::decode(mep)->is_complete());
    EXPECT_EQ(MepView::decode(mep)->mfp(1).size(), 8);
}

TEST(Mep, ComesBackAsItWas) {
    base::RandomStream random(1, "MEPs");
    for (int round = 0; round < 50; ++round) {
        const auto streams = static_cast<std::uint32_t>(random.uniform_int(40));
        const MepLayout layout{.header = mep_overhead(streams), .alignment = 64};
        std::vector<Bytes> sizes(streams);
        std::vector<Bytes> offsets(streams);
        std::vector<MepEntry> entries(streams);
        for (std::uint32_t i = 0; i < streams; ++i) {
            entries[i].source_id = static_cast<std::uint16_t>(random());
            entries[i].state = static_cast<MepState>(random.uniform_int(3));
            if (entries[i].state != MepState::empty) {
                sizes[i] = static_cast<Bytes>(random.uniform_int(300));
            }
        }
        Memory mep(static_cast<std::size_t>(lay_out(layout, sizes, offsets)));
        for (std::uint32_t i = 0; i < streams; ++i) {
            entries[i].offset = offsets[i];
            entries[i].bytes = sizes[i];
        }
        const MepHeader header{.mep = MepId{random()},
                               .event_id = random(),
                               .events = static_cast<std::uint32_t>(random())};
        ASSERT_TRUE(encode_mep(header, entries, mep).has_value());
        const auto view = MepView::decode(mep);
        ASSERT_TRUE(view.has_value()) << view.error().message;
        EXPECT_EQ(view->header(), header);
        for (std::uint32_t i = 0; i < streams; ++i) {
            ASSERT_EQ(view->entry(i), entries[i]);
        }
        EXPECT_EQ(view->is_complete(), std::ranges::none_of(entries, [](const MepEntry& entry) {
                      return entry.state == MepState::missing;
                  }));
    }
}

TEST(Mep, RefusesPacketsCutOffAnywhereOrTooLong) {
    for (std::size_t size = 0; size < example_mep.size(); ++size) {
        EXPECT_FALSE(MepView::decode(std::span(example_mep).first(size)).has_value()) << size;
    }
    Memory longer = example_mep;
    longer.push_back(0);
    EXPECT_EQ(MepView::decode(longer).error().message,
              "MEP header gives 104 bytes, but the packet has 105");
}

TEST(Mep, ReportsErrorsInASentence) {
    const auto message = [](std::size_t at, std::uint8_t value) {
        Memory mep = example_mep;
        mep[at] = value;
        return base::message_of(MepView::decode(mep));
    };
    EXPECT_EQ(message(0, 0x4e), "no MEP: it begins with 0x3150454e instead of 0x3150454d");
    EXPECT_EQ(message(6, 2), "MEP of 131075 streams; expected at most 65536");
    EXPECT_EQ(message(4, 8), "MEP of 104 bytes; its header and table of 8 streams take 168");
    EXPECT_EQ(message(39, 0x80),
              "MEP of 9223372036854775912 bytes; its header and table of 3 streams take 88");
    EXPECT_EQ(message(28, 0), "MEP with flags 0x0; expected 0x1 from the states of its streams");
    EXPECT_EQ(message(29, 1), "MEP with flags 0x101; expected 0x1 from the states of its streams");
    EXPECT_EQ(message(54, 3), "MEP, source 0x2801: state 3; expected 0 to 2");
    EXPECT_EQ(message(54, 2), "MEP, source 0x2801: empty, with 5 bytes; expected none");
    const auto misplaced = [](const std::string& bytes, const std::string& from) {
        return "MEP, source " + bytes +
               "; expected a place behind the previous MFP, which ends at " + from +
               ", and before the end of the MEP at 104";
    };
    EXPECT_EQ(message(40, 0x57), misplaced("0x2801: 5 bytes at 87", "88"));
    EXPECT_EQ(message(56, 0x5c), misplaced("0x2802: 8 bytes at 92", "93"));
    EXPECT_EQ(message(64, 9), misplaced("0x2802: 9 bytes at 96", "93"));
    EXPECT_EQ(message(47, 0x80), misplaced("0x2801: 5 bytes at -9223372036854775720", "88"));
}

TEST(Mep, IsNotEncodedIfItCouldNotBeDecoded) {
    Memory mep(104);
    const auto message = [&](const std::vector<MepEntry>& entries) {
        return base::message_of(encode_mep({}, entries, mep));
    };
    auto entries = entries_of_example;
    entries[1].offset = 92;
    EXPECT_NE(message(entries).find("source 0x2802: 8 bytes at 92"), std::string::npos);
    entries = entries_of_example;
    entries[0].bytes = -1;
    EXPECT_EQ(message(entries), "MEP, source 0x2801: -1 bytes; expected 0 to 4294967295");
    EXPECT_EQ(message(std::vector<MepEntry>(5)),
              "MEP of 104 bytes; its header and table of 5 streams take 120");
    EXPECT_EQ(message(std::vector<MepEntry>(65'537)), "MEP of 65537 streams; give at most 65536");
}

}  // namespace
}  // namespace daqloom::protocol

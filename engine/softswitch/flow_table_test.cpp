#include "softswitch/flow_table.hpp"

#include <gtest/gtest.h>

namespace daqloom::softswitch {
namespace {

using What = Action::What;

FlowEntry entry_of(std::uint64_t destination, std::uint16_t priority = 0, What what = What::drop) {
    FlowEntry entry;
    entry.match.destination = MacAddress{destination};
    entry.priority = priority;
    entry.action = {.what = what};
    return entry;
}

Headers to(std::uint64_t destination) {
    Headers headers;
    headers.is_frame = true;
    headers.destination = MacAddress{destination};
    return headers;
}

TEST(FlowTable, FindsAndCountsPerEntry) {
    FlowTable table(4, 0);
    ASSERT_TRUE(table.set(FlowIndex(2), entry_of(7)));
    ASSERT_TRUE(table.set(FlowIndex(0), entry_of(7, 5, What::flood)));
    EXPECT_EQ(table.find(to(7), 0), FlowIndex(0));  // of the higher priority
    EXPECT_EQ(table.find(to(8), 0), FlowIndex::none());
    EXPECT_TRUE(table.passes(FlowIndex(0), 100, {}));
    EXPECT_TRUE(table.passes(FlowIndex(0), 50, {}));
    EXPECT_EQ(table.counters(FlowIndex(0)).packets, 2U);
    EXPECT_EQ(table.counters(FlowIndex(0)).bytes, 150U);
    EXPECT_EQ(table.counters(FlowIndex(2)).packets, 0U);
    table.remove(FlowIndex(0));
    EXPECT_EQ(table.find(to(7), 0), FlowIndex(2));
}

TEST(FlowTable, ANewActionKeepsTheCountsAndANewMatchDoesNot) {
    FlowTable table(1, 0);
    ASSERT_TRUE(table.set(FlowIndex(0), entry_of(7)));
    EXPECT_TRUE(table.passes(FlowIndex(0), 100, {}));
    ASSERT_TRUE(table.set(FlowIndex(0), entry_of(7, 0, What::flood)));
    EXPECT_EQ(table.action(FlowIndex(0)).what, What::flood);
    EXPECT_EQ(table.counters(FlowIndex(0)).packets, 1U);
    ASSERT_TRUE(table.set(FlowIndex(0), entry_of(8)));
    EXPECT_EQ(table.counters(FlowIndex(0)).packets, 0U);
    EXPECT_EQ(table.find(to(7), 0), FlowIndex::none());
    EXPECT_EQ(table.find(to(8), 0), FlowIndex(0));
}

TEST(FlowTable, RefusesNumbersThatItDoesNotHave) {
    FlowTable table(1, 1);
    EXPECT_FALSE(table.set(FlowIndex(1), entry_of(7)));
    FlowEntry metered = entry_of(7);
    metered.meter = MeterIndex(1);
    EXPECT_FALSE(table.set(FlowIndex(0), metered));
    EXPECT_EQ(table.find(to(7), 0), FlowIndex::none());
    table.remove(FlowIndex(5));
}

TEST(FlowTable, AnEntryThatHasNoPlaceLeavesTheOldOne) {
    FlowTable table(MatchTable::kMostKinds + 1, 0);
    for (std::uint8_t kind = 0; kind < MatchTable::kMostKinds; ++kind) {
        FlowEntry entry;
        entry.match.to = IpAddress{};
        entry.match.prefix = static_cast<std::uint8_t>(kind + 1);
        ASSERT_TRUE(table.set(FlowIndex(kind), entry));
    }
    ASSERT_FALSE(table.set(FlowIndex(MatchTable::kMostKinds), entry_of(7)));
    Headers headers = to(1);
    headers.is_ip = true;
    EXPECT_EQ(table.find(headers, 0), FlowIndex(0));  // the first that was there
}

TEST(FlowTable, AMeterDropsExcessPacketsOfItsEntries) {
    FlowTable table(2, 1);
    table.meters().set(MeterIndex(0), {.unit = MeterConfig::Unit::packets, .per_second = 1});
    for (const std::uint32_t number : {0U, 1U}) {
        FlowEntry entry = entry_of(number);
        entry.meter = MeterIndex(0);
        ASSERT_TRUE(table.set(FlowIndex(number), entry));
    }
    EXPECT_TRUE(table.passes(FlowIndex(0), 100, {}));
    EXPECT_FALSE(table.passes(FlowIndex(1), 100, {}));    // one meter for both
    EXPECT_EQ(table.counters(FlowIndex(1)).packets, 1U);  // also what the meter drops
    EXPECT_EQ(table.meters().counters(MeterIndex(0)).dropped, 1U);
}

}  // namespace
}  // namespace daqloom::softswitch

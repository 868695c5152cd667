#include "protocol/machines/slot_table.hpp"

#include <gtest/gtest.h>

#include <unordered_map>

#include "base/random.hpp"

namespace daqloom::protocol {
namespace {

TEST(SlotTable, AgreesWithAMapUnderRandomInsertionAndErasure) {
    for (const std::uint32_t capacity : {1U, 2U, 3U, 32U, 500U}) {
        base::RandomStream random(capacity, "slot table");
        SlotTable table(capacity);
        std::unordered_map<std::uint64_t, SlotTable::Slot> expected;
        // Few different events, so that most repeat; half of them are far apart, half side by side.
        const auto event_of = [&](std::uint64_t i) { return i % 2 == 0 ? i << 58 | i : i; };
        for (SlotTable::Slot step = 0; step < 20'000; ++step) {
            const std::uint64_t event = event_of(random.uniform_int(3 * capacity + 1));
            const auto known = expected.find(event);
            ASSERT_EQ(table.find(EventId{event}),
                      known == expected.end() ? SlotTable::none : known->second);
            if (known != expected.end()) {
                table.erase(EventId{event});
                expected.erase(known);
            } else if (expected.size() < capacity) {
                table.insert(EventId{event}, step);
                expected[event] = step;
            }
        }
        for (const auto& [event, slot] : expected) {
            EXPECT_EQ(table.find(EventId{event}), slot);
        }
    }
}

}  // namespace
}  // namespace daqloom::protocol

#include "protocol/machines/storage_sender.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace daqloom::protocol {
namespace {

using base::milliseconds;
using base::Time;

constexpr std::uint64_t seed = 7;

/// Records outputs as text.
struct Script {
    void store(EventId event, SlotTable::Slot slot, StorageIndex unit) {
        lines.push_back(
            fmt::format("store {} of slot {} at {}", static_cast<int>(event), slot, unit.value()));
    }
    void set_deadline(Time at, EventId event, std::uint32_t attempt) {
        lines.push_back(fmt::format("deadline {} of {} at {} ms", attempt, static_cast<int>(event),
                                    at.ps / 1'000'000'000));
    }
    void release(EventId event) {
        lines.push_back(fmt::format("release {}", static_cast<int>(event)));
    }
    std::vector<std::string> take() { return std::exchange(lines, {}); }

    std::vector<std::string> lines;
};

using Lines = std::vector<std::string>;

StorageSender all_accepted(std::uint32_t units) {
    return {{.units = units, .accepted = 1.0, .timeout = milliseconds(10)}, seed, 4};
}

TEST(StorageRules, AcceptTheShareOfEventsWithTheirNumbersAndSeedAlone) {
    const StorageRules rules{.units = 2, .accepted = 0.01};
    std::uint64_t accepted = 0;
    std::uint64_t by_another_seed_too = 0;
    for (std::uint64_t event = 0; event < 1'000'000; ++event) {
        const bool is_accepted = rules.accepts(EventId{event}, seed);
        EXPECT_EQ(is_accepted, rules.accepts(EventId{event}, seed));
        accepted += is_accepted ? 1 : 0;
        by_another_seed_too += is_accepted && rules.accepts(EventId{event}, seed + 1) ? 1 : 0;
    }
    // Binomial: 10 000 with a standard deviation of 99.5, and 100 with one of 10.
    EXPECT_NEAR(static_cast<double>(accepted), 10'000, 500);
    EXPECT_NEAR(static_cast<double>(by_another_seed_too), 100, 50);
}

TEST(StorageRules, AcceptNothingWithoutUnitsOrShareAndAllWithTheWholeShare) {
    for (std::uint64_t event = 0; event < 1'000; ++event) {
        EXPECT_FALSE((StorageRules{.units = 0, .accepted = 1}.accepts(EventId{event}, seed)));
        EXPECT_FALSE((StorageRules{.units = 1, .accepted = 0}.accepts(EventId{event}, seed)));
        EXPECT_TRUE((StorageRules{.units = 1, .accepted = 1}.accepts(EventId{event}, seed)));
    }
}

TEST(StorageSender, HoldsAnEventUntilItIsStored) {
    StorageSender sender = all_accepted(2);
    Script out;
    EXPECT_TRUE(sender.on_processed(EventId{5}, 3, milliseconds(1), out));
    EXPECT_EQ(out.take(), (Lines{"deadline 0 of 5 at 11 ms", "store 5 of slot 3 at 1"}));
    EXPECT_EQ(sender.held(), 1U);
    EXPECT_TRUE(sender.on_stored(EventId{5}, 3, out));
    EXPECT_EQ(out.take(), Lines{"release 5"});
    EXPECT_EQ(sender.held(), 0U);
    sender.on_deadline(EventId{5}, 3, 0, milliseconds(11), out);
    EXPECT_EQ(out.take(), Lines{});
}

TEST(StorageSender, GoesOnToTheNextUnitAndGivesUpAfterTheLast) {
    StorageSender sender = all_accepted(2);
    Script out;
    sender.on_processed(EventId{5}, 0, Time::zero(), out);
    out.take();
    sender.on_deadline(EventId{5}, 0, 0, milliseconds(10), out);
    EXPECT_EQ(out.take(), (Lines{"deadline 1 of 5 at 20 ms", "store 5 of slot 0 at 0"}));
    sender.on_deadline(EventId{5}, 0, 0, milliseconds(15), out);  // of an attempt that is over
    EXPECT_EQ(out.take(), Lines{});
    sender.on_deadline(EventId{5}, 0, 1, milliseconds(20), out);
    EXPECT_EQ(out.take(), Lines{"release 5"});
    EXPECT_EQ(sender.counters().given_up, 1U);
    EXPECT_EQ(sender.counters().sent, 2U);
    EXPECT_FALSE(sender.on_stored(EventId{5}, SlotTable::none, out));
    EXPECT_EQ(sender.counters().late, 1U);
    EXPECT_EQ(sender.counters().stored, 0U);
}

TEST(StorageSender, LeavesEventsThatAreNotAcceptedToItsDriver) {
    StorageSender sender({.units = 1, .accepted = 0}, seed, 1);
    Script out;
    EXPECT_FALSE(sender.on_processed(EventId{0}, 0, Time::zero(), out));
    EXPECT_EQ(out.take(), Lines{});
    EXPECT_EQ(sender.counters().accepted, 0U);
}

}  // namespace
}  // namespace daqloom::protocol

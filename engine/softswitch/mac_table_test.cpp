#include "softswitch/mac_table.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/random.hpp"

namespace daqloom::softswitch {
namespace {

using base::seconds;
using base::Time;

constexpr MacAddress kOne{0x020000000001};
constexpr MacAddress kTwo{0x020000000002};

TEST(MacTable, LearnsWhereAnAddressIsAndWhereItGoes) {
    MacTable table({});
    EXPECT_FALSE(table.find(kOne, 0, Time{}));
    table.learn(kOne, 0, PortIndex(3), Time{});
    EXPECT_EQ(table.find(kOne, 0, Time{}), PortIndex(3));
    EXPECT_FALSE(table.find(kOne, 5, Time{})) << "another VLAN";
    table.learn(kOne, 0, PortIndex(4), seconds(1));
    EXPECT_EQ(table.find(kOne, 0, seconds(1)), PortIndex(4));
    EXPECT_EQ(table.counters().moved, 1U);
    table.learn(MacAddress{0xffffffffffff}, 0, PortIndex(1), Time{});
    EXPECT_EQ(table.size(), 1U);
}

TEST(MacTable, ForgetsWithTime) {
    MacTable table({.ageing = seconds(10)});
    table.learn(kOne, 0, PortIndex(1), Time{});
    table.learn(kTwo, 0, PortIndex(1), Time{});
    table.learn(kOne, 0, PortIndex(1), seconds(8));
    EXPECT_TRUE(table.find(kTwo, 0, seconds(10)));
    EXPECT_FALSE(table.find(kTwo, 0, seconds(10) + Time{1}));
    EXPECT_TRUE(table.find(kOne, 0, seconds(18)));
}

TEST(MacTable, FixedAddressesStayAndOthersGoWithTheirPorts) {
    MacTable table({.ageing = seconds(10)});
    table.learn(kTwo, 0, PortIndex(1), Time{});
    table.learn({3}, 0, PortIndex(2), Time{});
    EXPECT_TRUE(table.fix(kOne, 0, PortIndex(1)));
    table.learn(kOne, 0, PortIndex(2), seconds(1));
    EXPECT_EQ(table.find(kOne, 0, seconds(1'000)), PortIndex(1));
    table.forget_port(PortIndex(1));
    EXPECT_TRUE(table.find(kOne, 0, Time{}));
    EXPECT_FALSE(table.find(kTwo, 0, Time{}));
    EXPECT_TRUE(table.find({3}, 0, Time{}));
    EXPECT_TRUE(table.forget(kOne, 0));
    EXPECT_FALSE(table.find(kOne, 0, Time{}));
    EXPECT_FALSE(table.forget(kOne, 0));
}

TEST(MacTable, AddressesFixedForEveryVlanHoldInEach) {
    MacTable table({});
    table.learn(kOne, 5, PortIndex(2), Time{});
    EXPECT_TRUE(table.fix(kOne, MacTable::kEveryVlan, PortIndex(1)));
    for (const std::uint16_t vlan : std::array<std::uint16_t, 3>{0, 5, 4095}) {
        table.learn(kOne, vlan, PortIndex(3), Time{});
        EXPECT_EQ(table.find(kOne, vlan, Time{}), PortIndex(1)) << vlan;
    }
    EXPECT_TRUE(table.fix(kOne, 7, PortIndex(4)));
    EXPECT_EQ(table.find(kOne, 7, Time{}), PortIndex(4)) << "the VLAN of its own comes first";
    EXPECT_EQ(table.find(kTwo, 7, Time{}), std::nullopt);
    EXPECT_TRUE(table.forget(kOne, MacTable::kEveryVlan));
    EXPECT_EQ(table.find(kOne, 0, Time{}), std::nullopt);
    table.learn(kTwo, 4095, PortIndex(3), Time{});
    EXPECT_EQ(table.find(kTwo, 0, Time{}), std::nullopt) << "a tag of 4095 is not every VLAN";
}

TEST(MacTable, APortLearnsAsManyAsItMay) {
    MacTable table({.ageing = seconds(10)});
    table.set_most(PortIndex(1), 2);
    const auto learn = [&](std::uint64_t address, std::uint16_t port, Time at = {}) {
        return table.learn(MacAddress{address}, 0, PortIndex(port), at);
    };
    EXPECT_EQ(learn(2, 1), MacTable::Learned::news);
    EXPECT_EQ(learn(4, 1), MacTable::Learned::news);
    EXPECT_EQ(learn(6, 1), MacTable::Learned::refused);
    EXPECT_EQ(learn(2, 1), MacTable::Learned::known);
    EXPECT_EQ(learn(6, 0), MacTable::Learned::news) << "another port has its own limit";
    EXPECT_EQ(learn(6, 1), MacTable::Learned::refused) << "nor may it take that address over";
    EXPECT_EQ(table.find(MacAddress{6}, 0, Time{}), PortIndex(0));
    EXPECT_EQ(table.counters().limited, 2U);
    EXPECT_EQ(learn(4, 0), MacTable::Learned::news);
    EXPECT_EQ(table.learned_at(PortIndex(1)), 1U);
    EXPECT_EQ(learn(8, 1), MacTable::Learned::news) << "one has moved away";
    EXPECT_EQ(table.learned_at(PortIndex(1)), 2U);
}

/// One port fills the table with an address in 4,096 VLANs. Another port's addresses replace them,
/// up to half of a port's share of 256; addresses in use at other ports stay.
TEST(MacTable, AFullTableMakesRoomAtThePortThatHasMost) {
    MacTable table({.most = 1024, .ageing = seconds(300), .ports = 4});
    table.learn(kTwo, 0, PortIndex(1), Time{});
    for (std::uint16_t vlan = 0; vlan < 4096; ++vlan) {
        table.learn(kOne, vlan, PortIndex(2), Time{});
    }
    EXPECT_EQ(table.size(), 1024U);
    for (std::uint64_t i = 0; i < 200; ++i) {
        const MacAddress host{0x060000000000 + (i << 8)};
        const bool is_known = i < 128;
        EXPECT_EQ(table.learn(host, 0, PortIndex(3), seconds(1)),
                  is_known ? MacTable::Learned::news : MacTable::Learned::refused)
            << i;
        EXPECT_EQ(table.find(host, 0, seconds(1)).has_value(), is_known);
    }
    EXPECT_EQ(table.find(kTwo, 0, seconds(1)), PortIndex(1));
    EXPECT_EQ(table.counters().displaced, 128U);
    EXPECT_EQ(table.learned_at(PortIndex(2)) + 129, table.size());
}

/// A million addresses do not replace addresses that are in use; addresses not learned are counted.
TEST(MacTable, IsNotFloodedByAMillionAddresses) {
    MacTable table({.most = 1024, .ageing = seconds(10)});
    for (std::uint64_t i = 0; i < 100; ++i) {
        table.learn(MacAddress{i << 8}, 0, PortIndex(1), Time{});
    }
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
        table.learn(MacAddress{0x040000000000 + i}, 0, PortIndex(2), seconds(1));
    }
    EXPECT_LE(table.size(), 1024U);
    EXPECT_EQ(table.counters().learned + table.counters().full, 1'000'100U);
    for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(table.find(MacAddress{i << 8}, 0, seconds(9)), PortIndex(1));
    }
    // Expired addresses give their places to others.
    table.learn(kOne, 0, PortIndex(3), seconds(100));
    EXPECT_EQ(table.find(kOne, 0, seconds(100)), PortIndex(3));
}

/// A table that is never full behaves as a map.
TEST(MacTable, IsAsAMap) {
    base::RandomStream random(1, "addresses");
    MacTable table({.most = 4096, .ageing = seconds(50)});
    std::map<std::uint64_t, std::pair<PortIndex, Time>> expected;
    Time now;
    for (int step = 0; step < 100'000; ++step) {
        now += base::milliseconds(static_cast<std::int64_t>(random.uniform_int(20)));
        const std::uint64_t address = random.uniform_int(1'000);
        if (random.uniform_int(2) == 0) {
            const PortIndex port(static_cast<std::uint16_t>(random.uniform_int(8)));
            table.learn(MacAddress{address}, 0, port, now);
            expected[address] = {port, now};
        } else {
            const auto found = table.find(MacAddress{address}, 0, now);
            const auto known = expected.find(address);
            const bool is_there =
                known != expected.end() && now - known->second.second <= seconds(50);
            ASSERT_EQ(found, is_there ? std::optional(known->second.first) : std::nullopt);
        }
    }
    EXPECT_EQ(table.counters().full, 0U);
}

}  // namespace
}  // namespace daqloom::softswitch

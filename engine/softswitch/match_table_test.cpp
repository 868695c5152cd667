#include "softswitch/match_table.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace daqloom::softswitch {
namespace {

/// Match on `prefix` bits of an IPv4 address.
Match to_v4(std::uint32_t address, std::uint8_t prefix = 32) {
    Match match;
    const std::uint32_t counts = prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix);
    match.to = IpAddress::v4(address & counts);
    match.prefix = static_cast<std::uint8_t>(96 + prefix);
    return match;
}

Headers ip_to(std::uint32_t address, IpProtocol protocol = IpProtocol::none,
              std::uint16_t port = 0) {
    Headers headers;
    headers.is_frame = headers.is_ip = true;
    headers.type = static_cast<std::uint16_t>(EtherType::ipv4);
    headers.to = IpAddress::v4(address);
    headers.protocol = protocol;
    headers.has_ports = protocol != IpProtocol::none;
    headers.to_port = port;
    return headers;
}

TEST(MatchTable, TheHighestPriorityCounts) {
    MatchTable table(10);
    EXPECT_FALSE(table.find(ip_to(0x0a000001), 0));
    EXPECT_TRUE(table.set({}, 0, 1));  // anything
    EXPECT_TRUE(table.set(to_v4(0x0a000000, 8), 10, 2));
    EXPECT_TRUE(table.set(to_v4(0x0a000001), 20, 3));
    EXPECT_EQ(table.find(ip_to(0x0a000001), 0), 3U);
    EXPECT_EQ(table.find(ip_to(0x0a000002), 0), 2U);
    EXPECT_EQ(table.find(ip_to(0x0b000001), 0), 1U);
    EXPECT_TRUE(table.set(to_v4(0x0a000000, 8), 30, 4));  // another one of the same key
    EXPECT_EQ(table.find(ip_to(0x0a000001), 0), 4U);
    EXPECT_TRUE(table.remove(to_v4(0x0a000000, 8), 30));
    EXPECT_FALSE(table.remove(to_v4(0x0a000000, 8), 30));
    EXPECT_EQ(table.find(ip_to(0x0a000001), 0), 3U);
}

TEST(MatchTable, OfEqualPrioritiesTheFirstCounts) {
    MatchTable table(10);
    table.set(to_v4(0x0a000000, 8), 5, 1);
    table.set(to_v4(0x0a000001), 5, 2);
    EXPECT_EQ(table.find(ip_to(0x0a000001), 0), 1U);
    table.set(to_v4(0x0a000000, 8), 5, 7);  // replaced, where it was
    EXPECT_EQ(table.find(ip_to(0x0a000001), 0), 7U);
    EXPECT_EQ(table.size(), 2U);
}

/// An absent field does not match 0.
TEST(MatchTable, PortsOfPacketsWithoutPortsDoNotMatch) {
    MatchTable table(10);
    Match match;
    match.to_port = 0;
    table.set(match, 1, 1);
    EXPECT_FALSE(table.find(ip_to(0x0a000001), 0));
    EXPECT_EQ(table.find(ip_to(0x0a000001, IpProtocol::udp, 0), 0), 1U);
    Match everywhere = to_v4(0, 0);
    everywhere.prefix = 0;
    table.set(everywhere, 0, 2);
    EXPECT_FALSE(table.find(Headers{}, 0)) << "no IP";
    EXPECT_EQ(table.find(ip_to(0xffffffff), 0), 2U);
}

TEST(MatchTable, HoldsNoMoreThanItMay) {
    MatchTable table(1000);
    for (std::uint32_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(table.set(to_v4(i), 0, i));
    }
    EXPECT_FALSE(table.set(to_v4(1000), 0, 0));
    EXPECT_EQ(table.find(ip_to(999), 0), 999U);
    EXPECT_TRUE(table.remove(to_v4(5), 0));
    EXPECT_TRUE(table.set(to_v4(1000), 0, 0));

    MatchTable kinds(1000);
    std::uint32_t taken = 0;
    for (std::uint8_t prefix = 0; prefix < 33; ++prefix) {
        taken += kinds.set(to_v4(0, prefix), 0, 0) ? 1 : 0;
    }
    EXPECT_EQ(taken, MatchTable::kMostKinds);
}

bool holds(const Match& match, const Headers& headers, std::uint16_t ingress) {
    if (match.to) {
        for (int bit = 0; bit < match.prefix; ++bit) {
            const auto at = [bit](const IpAddress& address) {
                return (bit < 64 ? address.high >> (63 - bit) : address.low >> (127 - bit)) & 1;
            };
            if (!headers.is_ip || at(*match.to) != at(headers.to)) {
                return false;
            }
        }
    }
    return (!match.destination || *match.destination == headers.destination) &&
           (!match.vlan || *match.vlan == headers.vlan) &&
           (!match.ethertype || *match.ethertype == headers.type) &&
           (!match.protocol ||
            (headers.is_ip && *match.protocol == static_cast<std::uint8_t>(headers.protocol))) &&
           (!match.from_port || (headers.has_ports && *match.from_port == headers.from_port)) &&
           (!match.to_port || (headers.has_ports && *match.to_port == headers.to_port)) &&
           (!match.ingress || *match.ingress == ingress);
}

TEST(MatchTable, IsAsALookAtEveryRule) {
    std::uint64_t found = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        base::RandomStream random(seed, "rules");
        const auto below = [&](std::uint64_t n) {
            return static_cast<std::uint16_t>(random.uniform_int(n));
        };
        struct Rule {
            Match match;
            std::uint16_t priority;
            std::uint32_t value;
        };
        std::vector<Rule> rules;
        MatchTable table(200);
        for (std::uint32_t i = 0; i < 60; ++i) {
            Match match =
                below(2) == 0 ? to_v4(below(8), static_cast<std::uint8_t>(28 + below(5))) : Match{};
            if (below(3) == 0) match.vlan = below(2);
            if (below(3) == 0) match.to_port = below(2);
            if (below(4) == 0) match.ingress = below(2);
            if (below(4) == 0) match.destination = MacAddress{below(2)};
            if (below(4) == 0)
                match.protocol =
                    static_cast<std::uint8_t>(below(2) == 0 ? IpProtocol::udp : IpProtocol::tcp);
            const std::uint16_t priority = below(4);
            if (below(5) == 0 && !rules.empty()) {
                const std::size_t gone = below(rules.size());
                EXPECT_TRUE(table.remove(rules[gone].match, rules[gone].priority));
                rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(gone));
            }
            if (!table.set(match, priority, i)) {
                continue;  // too many kinds
            }
            bool is_new = true;
            for (Rule& rule : rules) {
                const bool is_same = rule.priority == priority && rule.match == match;
                rule.value = is_same ? i : rule.value;
                is_new = is_new && !is_same;
            }
            if (is_new) {
                rules.push_back({match, priority, i});
            }
        }
        for (int i = 0; i < 300; ++i) {
            Headers headers =
                ip_to(below(8), below(2) == 0 ? IpProtocol::udp : IpProtocol::none, below(2));
            headers.is_ip = headers.is_ip && below(8) > 0;
            headers.vlan = below(2);
            headers.destination = {below(2)};
            const std::uint16_t ingress = below(2);
            const Rule* best = nullptr;
            for (const Rule& rule : rules) {
                if (holds(rule.match, headers, ingress) &&
                    (best == nullptr || rule.priority > best->priority)) {
                    best = &rule;
                }
            }
            const auto value = table.find(headers, ingress);
            ASSERT_EQ(value.has_value(), best != nullptr);
            if (best != nullptr) {
                ASSERT_EQ(*value, best->value);
                ++found;
            }
        }
    }
    EXPECT_GT(found, 5'000U);
}

}  // namespace
}  // namespace daqloom::softswitch

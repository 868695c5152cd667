// Match table: rules on destination, VLAN, prefix of the IP address, protocol, ports.
//
// Tuple space search: rules on the same fields, with equal prefix lengths, share a hash table, so
// that a look-up costs the same for one rule as for thousands of rules of this kind.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.hpp"
#include "softswitch/headers.hpp"

namespace daqloom::softswitch {

/// Required header fields of a packet; an empty field matches any value.
struct Match {
    DAQLOOM_FIELDS(Match, (std::optional<MacAddress>, destination, "Ethernet address."),
                   (std::optional<std::uint16_t>, vlan, "VLAN of the outermost tag."),
                   (std::optional<std::uint16_t>, ethertype, "EtherType behind tags."),
                   (std::optional<IpAddress>, to,
                    "IP address of the destination, as two numbers of 64 bits; an IPv4 address as "
                    "::ffff:a.b.c.d."),
                   (std::uint8_t, prefix,
                    "Bits of `to` that are compared; for IPv4 the prefix length + 96.", 128),
                   (std::optional<std::uint8_t>, protocol, "Protocol of the IP packet, by number."),
                   (std::optional<std::uint16_t>, from_port, "Source port of TCP or UDP."),
                   (std::optional<std::uint16_t>, to_port, "Destination port of TCP or UDP."),
                   (std::optional<std::uint16_t>, ingress, "Port of the switch."))

    friend bool operator==(const Match&, const Match&) = default;
};

/// Rules, each with a value: at most `most` rules, of at most `kMostKinds` kinds.
class MatchTable {
  public:
    /// Limit on kinds of rules; a kind is a set of compared fields and prefix lengths.
    static constexpr std::size_t kMostKinds = 32;

    explicit MatchTable(std::uint32_t most) : most_(most) {}

    /// Adds a rule, or replaces the rule with the same match and priority. Of all matching rules,
    /// the one of highest priority applies, then the oldest. Returns false if the table is full.
    bool set(const Match& match, std::uint16_t priority, std::uint32_t value);
    /// Returns false if there is no such rule.
    bool remove(const Match& match, std::uint16_t priority);

    /// Value of the rule that applies; empty if no rule matches.
    [[nodiscard]] std::optional<std::uint32_t> find(const Headers& headers,
                                                    std::uint16_t ingress) const;

    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    using Key = std::array<std::uint64_t, 5>;
    struct Rule {
        Key key;
        std::uint64_t order;
        std::uint32_t value;
        std::uint16_t priority;
    };
    struct Kind {
        Key mask;
        std::uint16_t highest = 0;  ///< highest priority of the rules
        std::size_t rules = 0;
        std::vector<std::vector<Rule>> buckets;  ///< a power of two; the best rule of a key first

        [[nodiscard]] std::vector<Rule>& bucket(const Key& key);
        [[nodiscard]] const std::vector<Rule>& bucket(const Key& key) const;
    };

    static Key key_of(const Headers& headers, std::uint16_t ingress);
    static Key key_of(const Match& match);
    static Key mask_of(const Match& match);
    Kind* kind_of(const Key& mask);
    void grow(Kind& kind);
    void sort();

    std::uint32_t most_;
    std::size_t size_ = 0;
    std::uint64_t order_ = 0;
    std::vector<Kind> kinds_;  ///< by descending highest priority
};

}  // namespace daqloom::softswitch

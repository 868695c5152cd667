#include "softswitch/match_table.hpp"

#include <algorithm>

#include "base/random.hpp"

namespace daqloom::softswitch {

namespace {

constexpr std::size_t kFewest = 16;  ///< buckets

/// Mask of the `bits` highest bits of a word, at most all.
std::uint64_t high_bits(int bits) {
    return bits <= 0 ? 0 : bits >= 64 ? ~std::uint64_t{0} : ~std::uint64_t{0} << (64 - bits);
}

/// VLAN, type and protocol share one word of a key; ingress and ports share another word.
std::uint64_t second_word(std::uint64_t vlan, std::uint64_t type, std::uint64_t protocol) {
    return vlan << 32 | type << 16 | protocol;
}
std::uint64_t third_word(std::uint64_t ingress, std::uint64_t from_port, std::uint64_t to_port) {
    return ingress << 32 | from_port << 16 | to_port;
}

/// Key of a field that a packet lacks: different from every value that a rule can require.
constexpr std::uint64_t kAbsent = std::uint64_t{1} << 63;
constexpr std::uint64_t kNoPorts = std::uint64_t{1} << 62;

}  // namespace

MatchTable::Key MatchTable::key_of(const Headers& headers, std::uint16_t ingress) {
    return {headers.destination.value,
            second_word(headers.vlan, headers.type, static_cast<std::uint8_t>(headers.protocol)) |
                (headers.is_ip ? 0 : kAbsent),
            third_word(ingress, headers.from_port, headers.to_port) |
                (headers.has_ports ? 0 : kNoPorts),
            headers.to.high, headers.to.low};
}

MatchTable::Key MatchTable::key_of(const Match& match) {
    const Key mask = mask_of(match);
    const IpAddress to = match.to.value_or(IpAddress{});
    Key key{match.destination.value_or(MacAddress{}).value,
            second_word(match.vlan.value_or(0), match.ethertype.value_or(0),
                        match.protocol.value_or(0)),
            third_word(match.ingress.value_or(0), match.from_port.value_or(0),
                       match.to_port.value_or(0)),
            to.high, to.low};
    for (std::size_t i = 0; i < key.size(); ++i) {
        key[i] &= mask[i];
    }
    return key;
}

MatchTable::Key MatchTable::mask_of(const Match& match) {
    constexpr std::uint64_t word = 0xffff;
    const auto all = [](bool is_given, std::uint64_t bits) { return is_given ? bits : 0; };
    const bool asks_for_ip = match.to || match.protocol;
    const bool asks_for_ports = match.from_port || match.to_port;
    const int prefix = match.to ? std::min<int>(match.prefix, 128) : 0;
    return {all(match.destination.has_value(), ~std::uint64_t{0}),
            second_word(all(match.vlan.has_value(), word), all(match.ethertype.has_value(), word),
                        all(match.protocol.has_value(), 0xff)) |
                all(asks_for_ip, kAbsent),
            third_word(all(match.ingress.has_value(), word), all(match.from_port.has_value(), word),
                       all(match.to_port.has_value(), word)) |
                all(asks_for_ports, kNoPorts),
            high_bits(prefix), high_bits(prefix - 64)};
}

namespace {

std::size_t place_of(const std::array<std::uint64_t, 5>& key, std::size_t buckets) {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : key) {
        hash = base::mixed(hash ^ word) + 0x9e3779b97f4a7c15;
    }
    return hash & (buckets - 1);
}

}  // namespace

std::vector<MatchTable::Rule>& MatchTable::Kind::bucket(const Key& key) {
    return buckets[place_of(key, buckets.size())];
}
const std::vector<MatchTable::Rule>& MatchTable::Kind::bucket(const Key& key) const {
    return buckets[place_of(key, buckets.size())];
}

MatchTable::Kind* MatchTable::kind_of(const Key& mask) {
    const auto found = std::ranges::find(kinds_, mask, &Kind::mask);
    return found == kinds_.end() ? nullptr : &*found;
}

bool MatchTable::set(const Match& match, std::uint16_t priority, std::uint32_t value) {
    const Key mask = mask_of(match);
    const Key key = key_of(match);
    Kind* kind = kind_of(mask);
    if (kind != nullptr) {
        for (Rule& rule : kind->bucket(key)) {
            if (rule.key == key && rule.priority == priority) {
                rule.value = value;
                return true;
            }
        }
    }
    if (size_ == most_ || (kind == nullptr && kinds_.size() == kMostKinds)) {
        return false;
    }
    if (kind == nullptr) {
        kind = &kinds_.emplace_back();
        kind->mask = mask;
        kind->buckets.resize(kFewest);
    }
    if (kind->rules >= kind->buckets.size()) {
        grow(*kind);
    }
    std::vector<Rule>& bucket = kind->bucket(key);
    const auto behind = std::ranges::find_if(
        bucket, [priority](const Rule& rule) { return rule.priority < priority; });
    bucket.insert(behind, {key, order_++, value, priority});
    kind->highest = std::max(kind->highest, priority);
    ++kind->rules;
    ++size_;
    sort();
    return true;
}

bool MatchTable::remove(const Match& match, std::uint16_t priority) {
    Kind* kind = kind_of(mask_of(match));
    if (kind == nullptr) {
        return false;
    }
    const Key key = key_of(match);
    const auto removed = std::erase_if(kind->bucket(key), [&](const Rule& rule) {
        return rule.key == key && rule.priority == priority;
    });
    if (removed == 0) {
        return false;
    }
    --kind->rules;
    --size_;
    kind->highest = 0;
    for (const std::vector<Rule>& bucket : kind->buckets) {
        for (const Rule& rule : bucket) {
            kind->highest = std::max(kind->highest, rule.priority);
        }
    }
    std::erase_if(kinds_, [](const Kind& each) { return each.rules == 0; });
    sort();
    return true;
}

void MatchTable::grow(Kind& kind) {
    std::vector<std::vector<Rule>> before(2 * kind.buckets.size());
    before.swap(kind.buckets);
    for (const std::vector<Rule>& bucket : before) {
        for (const Rule& rule : bucket) {
            kind.bucket(rule.key).push_back(rule);  // in the order of priority, as before
        }
    }
}

void MatchTable::sort() { std::ranges::stable_sort(kinds_, std::greater{}, &Kind::highest); }

std::optional<std::uint32_t> MatchTable::find(const Headers& headers, std::uint16_t ingress) const {
    const Key whole = key_of(headers, ingress);
    const Rule* best = nullptr;
    for (const Kind& kind : kinds_) {
        if (best != nullptr && kind.highest < best->priority) {
            break;
        }
        Key key = whole;
        for (std::size_t i = 0; i < key.size(); ++i) {
            key[i] &= kind.mask[i];
        }
        for (const Rule& rule : kind.bucket(key)) {
            if (rule.key == key) {
                const bool is_better =
                    best == nullptr || rule.priority > best->priority ||
                    (rule.priority == best->priority && rule.order < best->order);
                best = is_better ? &rule : best;
                break;
            }
        }
    }
    return best == nullptr ? std::nullopt : std::optional(best->value);
}

}  // namespace daqloom::softswitch

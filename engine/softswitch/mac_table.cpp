#include "softswitch/mac_table.hpp"

#include <algorithm>
#include <bit>

namespace daqloom::softswitch {

using base::Time;

MacTable::MacTable(const MacTableConfig& config)
    : config_(config),
      entries_(std::max<std::size_t>(kPlaces, std::bit_ceil(std::size_t{2} * config.most))) {}

std::size_t MacTable::place_of(std::uint64_t key) const {
    const std::uint64_t hash = (key ^ key >> 29) * 0x9e3779b97f4a7c15;
    return (hash >> 32) & (entries_.size() - 1);
}

const MacTable::Entry* MacTable::known(std::uint64_t key) const {
    const std::size_t first = place_of(key);
    for (std::size_t i = 0; i < kPlaces; ++i) {
        const Entry& entry = entries_[(first + i) & (entries_.size() - 1)];
        if (entry.key == key) {
            return &entry;
        }
    }
    return nullptr;
}

MacTable::Entry* MacTable::free_place(std::uint64_t key, Time now) {
    const std::size_t first = place_of(key);
    Entry* old = nullptr;
    for (std::size_t i = 0; i < kPlaces; ++i) {
        Entry& entry = entries_[(first + i) & (entries_.size() - 1)];
        if (entry.key == kFree && size_ < config_.most) {
            return &entry;
        }
        if (entry.key != kFree && is_old(entry, now)) {
            old = &entry;
        }
    }
    if (old != nullptr) {
        ++counters_.aged;
        release(*old);
    }
    return old;
}

std::optional<PortIndex> MacTable::find(MacAddress address, std::uint16_t vlan, Time now) const {
    const Entry* entry = known(key_of(address, vlan));
    return entry == nullptr || is_old(*entry, now) ? std::nullopt : std::optional(entry->port);
}

bool MacTable::learn(MacAddress address, std::uint16_t vlan, PortIndex port, Time now) {
    if (address.is_group()) {
        return false;
    }
    const std::uint64_t key = key_of(address, vlan);
    if (Entry* entry = known(key)) {
        if (entry->is_fixed) {
            return false;
        }
        const bool has_moved = entry->port != port;
        const bool is_news = has_moved || now - entry->told > config_.ageing / kToldAgain;
        counters_.moved += has_moved ? 1 : 0;
        entry->port = port;
        entry->seen = now;
        entry->told = is_news ? now : entry->told;
        return is_news;
    }
    Entry* entry = free_place(key, now);
    if (entry == nullptr) {
        ++counters_.full;
        return false;
    }
    *entry = {key, now, now, port, false};
    ++size_;
    ++counters_.learned;
    return true;
}

bool MacTable::fix(MacAddress address, std::uint16_t vlan, PortIndex port) {
    const std::uint64_t key = key_of(address, vlan);
    Entry* entry = known(key);
    if (entry == nullptr) {
        entry = free_place(key, Time{});
        if (entry == nullptr) {
            return false;
        }
        ++size_;
    }
    *entry = {key, {}, {}, port, true};
    return true;
}

bool MacTable::forget(MacAddress address, std::uint16_t vlan) {
    Entry* entry = known(key_of(address, vlan));
    if (entry == nullptr) {
        return false;
    }
    release(*entry);
    return true;
}

void MacTable::forget_port(PortIndex port) {
    for (Entry& entry : entries_) {
        if (entry.key != kFree && !entry.is_fixed && entry.port == port) {
            release(entry);
        }
    }
}

}  // namespace daqloom::softswitch

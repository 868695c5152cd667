#include "softswitch/mac_table.hpp"

#include <algorithm>
#include <bit>

namespace daqloom::softswitch {

using base::Time;

MacTable::MacTable(const MacTableConfig& config)
    : config_(config),
      entries_(std::max<std::size_t>(kPlaces, std::bit_ceil(std::size_t{2} * config.most))),
      learned_(config.ports),
      most_of_port_(config.ports),
      reserve_(std::max(1U, config.most / (2U * config.ports))) {}

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

const MacTable::Entry* MacTable::valid(MacAddress address, std::uint16_t vlan) const {
    const Entry* entry = known(key_of(address, vlan));
    if (fixed_in_every_vlan_ == 0 || (entry != nullptr && entry->is_fixed)) {
        return entry;
    }
    const Entry* everywhere = known(key_of(address, kEveryVlan));
    return everywhere != nullptr ? everywhere : entry;
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

MacTable::Entry* MacTable::place_of_most(std::uint64_t key, std::uint32_t than) {
    const std::size_t first = place_of(key);
    Entry* found = nullptr;
    for (std::size_t i = 0; i < kPlaces; ++i) {
        Entry& entry = entries_[(first + i) & (entries_.size() - 1)];
        if (entry.key != kFree && !entry.is_fixed && learned_[entry.port.value()] > than) {
            found = &entry;
            than = learned_[entry.port.value()];
        }
    }
    if (found != nullptr) {
        ++counters_.displaced;
        release(*found);
    }
    return found;
}

std::optional<PortIndex> MacTable::find(MacAddress address, std::uint16_t vlan, Time now) const {
    const Entry* entry = valid(address, vlan);
    return entry == nullptr || is_old(*entry, now) ? std::nullopt : std::optional(entry->port);
}

MacTable::Learned MacTable::learn(MacAddress address, std::uint16_t vlan, PortIndex port,
                                  Time now) {
    auto* entry = const_cast<Entry*>(valid(address, vlan));
    if (address.is_group() || (entry != nullptr && entry->is_fixed)) {
        return Learned::known;
    }
    const bool has_moved = entry != nullptr && entry->port != port;
    if ((entry == nullptr || has_moved) && !may_learn_at(port)) {
        ++counters_.limited;
        return Learned::refused;
    }
    if (entry != nullptr) {
        const bool is_news = has_moved || now - entry->reported > config_.ageing / kReportsPerAge;
        if (has_moved) {
            ++counters_.moved;
            --learned_[entry->port.value()];
            ++learned_[port.value()];
        }
        entry->port = port;
        entry->last_frame = now;
        entry->reported = is_news ? now : entry->reported;
        return is_news ? Learned::news : Learned::known;
    }
    const std::uint64_t key = key_of(address, vlan);
    entry = free_place(key, now);
    if (entry == nullptr && learned_[port.value()] < reserve_) {
        entry = place_of_most(key, reserve_);
    }
    if (entry == nullptr) {
        ++counters_.full;
        return Learned::refused;
    }
    *entry = {key, now, now, port, false};
    ++size_;
    ++learned_[port.value()];
    ++counters_.learned;
    return Learned::news;
}

bool MacTable::fix(MacAddress address, std::uint16_t vlan, PortIndex port) {
    const std::uint64_t key = key_of(address, vlan);
    Entry* entry = known(key);
    if (entry != nullptr) {
        release(*entry);
    } else {
        entry = free_place(key, Time{});
        if (entry == nullptr) {
            entry = place_of_most(key, 0);
        }
        if (entry == nullptr) {
            return false;
        }
    }
    ++size_;
    fixed_in_every_vlan_ += vlan == kEveryVlan ? 1 : 0;
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

// Table of addresses and their ports: learned from frames and removed after some time, or fixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "softswitch/headers.hpp"
#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

struct MacTableConfig {
    DAQLOOM_FIELDS(MacTableConfig,
                   (std::uint32_t, most, "Capacity in addresses, fixed ones included.", 8192),
                   (base::Time, ageing,
                    "Time after which an address without frames is forgotten (IEEE 802.1Q, 8.8.3).",
                    base::seconds(300)))
    std::uint16_t ports = 256;
};

struct MacTableCounters {
    DAQLOOM_FIELDS(MacTableCounters, (std::uint64_t, learned, "Addresses learned."),
                   (std::uint64_t, moved, "Addresses that moved to another port."),
                   (std::uint64_t, aged, "Addresses forgotten after `ageing` without frames."),
                   (std::uint64_t, full,
                    "Frames whose source was not learned: the table was full."),
                   (std::uint64_t, limited,
                    "Frames whose source was not learned: address limit of the port."),
                   (std::uint64_t, displaced,
                    "Addresses replaced by one of a port with fewer: the table was full."))
};

/// Hash table with a bounded number of places for each address, so that a flood of addresses never
/// makes a look-up slow. In a full table, the first addresses of a port, up to half of the port's
/// share of the table, replace addresses of the port with most addresses: no port keeps others
/// out, or evicts many of their addresses. Nothing is allocated after construction.
class MacTable {
  public:
    /// VLAN of a fixed address that is valid in all VLANs.
    static constexpr std::uint16_t kEveryVlan = 0xffff;

    enum class Learned : std::uint8_t {
        known,
        news,  ///< new, moved, or due for a refresh of the tables of other cores
        refused,
    };

    explicit MacTable(const MacTableConfig& config);

    /// Port of an address; empty: unknown.
    [[nodiscard]] std::optional<PortIndex> find(MacAddress address, std::uint16_t vlan,
                                                base::Time now) const;
    /// Learns the port for the source address of a frame; group addresses are not learned.
    Learned learn(MacAddress address, std::uint16_t vlan, PortIndex port, base::Time now);
    /// Fixes an address at a port, in one VLAN or in all. Returns false if the table has no place.
    bool fix(MacAddress address, std::uint16_t vlan, PortIndex port);
    /// Sets the limit on addresses learned at a port; 0: none. Addresses already learned stay.
    void set_most(PortIndex port, std::uint32_t most) { most_of_port_[port.value()] = most; }
    /// Removes a learned or fixed address. Returns false if the table does not have the address.
    bool forget(MacAddress address, std::uint16_t vlan);
    /// Removes all addresses learned at a port, because its link is down.
    void forget_port(PortIndex port);

    /// Number of addresses; an expired address counts until its place is needed.
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Number of addresses learned at a port, expired ones included.
    [[nodiscard]] std::uint32_t learned_at(PortIndex port) const { return learned_[port.value()]; }
    [[nodiscard]] const MacTableCounters& counters() const { return counters_; }

  private:
    static constexpr std::size_t kPlaces = 16;  ///< candidate places of an address
    /// Number of reports to other cores, within `ageing`, of an address that is in use.
    static constexpr int kReportsPerAge = 4;

    struct Entry {
        std::uint64_t key = kFree;  ///< address and VLAN
        base::Time last_frame;
        base::Time reported;  ///< time of the last report to other cores
        PortIndex port;
        bool is_fixed = false;
    };
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};

    /// Key of an address and a VLAN; no VLAN tag of a frame yields the key for kEveryVlan.
    static std::uint64_t key_of(MacAddress address, std::uint16_t vlan) {
        constexpr std::uint64_t every = std::uint64_t{1} << 60;
        return vlan == kEveryVlan ? every | address.value << 12 : address.value << 12 | vlan;
    }
    [[nodiscard]] std::size_t place_of(std::uint64_t key) const;
    [[nodiscard]] bool is_old(const Entry& entry, base::Time now) const {
        return !entry.is_fixed && now - entry.last_frame > config_.ageing;
    }
    [[nodiscard]] const Entry* known(std::uint64_t key) const;
    [[nodiscard]] Entry* known(std::uint64_t key) {
        return const_cast<Entry*>(static_cast<const MacTable*>(this)->known(key));
    }
    /// Entry that applies to an address in a VLAN: the entry fixed in this VLAN, else the entry
    /// fixed in every VLAN, else the learned entry; null if there is none.
    [[nodiscard]] const Entry* valid(MacAddress address, std::uint16_t vlan) const;
    /// Free place for a key; null if none is free. Places of expired addresses count as free.
    Entry* free_place(std::uint64_t key, base::Time now);
    /// Place of a learned address of the port with most learned addresses, if the port has more
    /// than `than`; else null.
    Entry* place_of_most(std::uint64_t key, std::uint32_t than);
    [[nodiscard]] bool may_learn_at(PortIndex port) const {
        const std::uint32_t most = most_of_port_[port.value()];
        return most == 0 || learned_[port.value()] < most;
    }
    void release(Entry& entry) {
        if (entry.is_fixed) {
            fixed_in_every_vlan_ -= entry.key >> 60 != 0 ? 1 : 0;
        } else {
            --learned_[entry.port.value()];
        }
        entry = {};
        --size_;
    }

    MacTableConfig config_;
    std::vector<Entry> entries_;  ///< a power of two, twice as many as addresses
    std::size_t size_ = 0;
    std::vector<std::uint32_t> learned_;  ///< at each port
    std::vector<std::uint32_t> most_of_port_;
    std::uint32_t reserve_;  ///< addresses of a port that may replace others in a full table
    std::size_t fixed_in_every_vlan_ = 0;
    MacTableCounters counters_;
};

}  // namespace daqloom::softswitch

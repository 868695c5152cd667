// Where addresses are: learned from what comes from there, forgotten with time, or given.
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
    DAQLOOM_FIELDS(MacTableConfig, (std::uint32_t, most, "Addresses, those given included.", 8192),
                   (base::Time, ageing,
                    "Time after which an address without frames is forgotten (IEEE 802.1Q, 8.8.3).",
                    base::seconds(300)))
    std::uint16_t ports = 256;
};

struct MacTableCounters {
    DAQLOOM_FIELDS(MacTableCounters, (std::uint64_t, learned, "Addresses learned."),
                   (std::uint64_t, moved, "Addresses that came from another port than before."),
                   (std::uint64_t, aged, "Addresses forgotten, as nothing came from them."),
                   (std::uint64_t, full,
                    "Frames whose source was not learned: the table was full."),
                   (std::uint64_t, limited,
                    "Frames whose source was not learned: its port has as many as it may."),
                   (std::uint64_t, displaced,
                    "Addresses forgotten for that of a port with fewer: the table was full."))
};

/// An address of a VLAN is in one of the places behind that which its hash gives; these are
/// bounded, so that no flood of addresses makes a look-up slow. In a full table the first addresses
/// of a port, half of its share of the table, take the places of some at the port that has most: so
/// no port keeps others out, nor drives out many of theirs. Nothing is allocated after
/// construction.
class MacTable {
  public:
    /// VLAN of a fixed address that holds in each of them.
    static constexpr std::uint16_t kEveryVlan = 0xffff;

    enum class Learned : std::uint8_t {
        known,
        news,  ///< new, moved, or due again for cores that have tables of their own
        refused,
    };

    explicit MacTable(const MacTableConfig& config);

    /// None: nobody knows.
    [[nodiscard]] std::optional<PortIndex> find(MacAddress address, std::uint16_t vlan,
                                                base::Time now) const;
    /// A frame from this address came in by this port. Addresses of groups are not learned.
    Learned learn(MacAddress address, std::uint16_t vlan, PortIndex port, base::Time now);
    /// Fixes an address at a port, in a VLAN or in each. False: there is no place.
    bool fix(MacAddress address, std::uint16_t vlan, PortIndex port);
    /// Addresses learned at a port from now on; 0: no limit of its own. Those that are there stay.
    void set_most(PortIndex port, std::uint32_t most) { most_of_port_[port.value()] = most; }
    /// Also one that was given. False: it is not there.
    bool forget(MacAddress address, std::uint16_t vlan);
    /// All that was learned at a port, whose link is down.
    void forget_port(PortIndex port);

    /// Those that are too old included, until their place is needed.
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Addresses learned at a port, likewise.
    [[nodiscard]] std::uint32_t learned_at(PortIndex port) const { return learned_[port.value()]; }
    [[nodiscard]] const MacTableCounters& counters() const { return counters_; }

  private:
    static constexpr std::size_t kPlaces = 16;  ///< in which an address may be
    /// Times that an address in use is news before it would be too old.
    static constexpr int kToldAgain = 4;

    struct Entry {
        std::uint64_t key = kFree;  ///< address and VLAN
        base::Time seen;
        base::Time told;  ///< when that was news
        PortIndex port;
        bool is_fixed = false;
    };
    static constexpr std::uint64_t kFree = ~std::uint64_t{0};

    /// No tag of a frame makes the key of every VLAN.
    static std::uint64_t key_of(MacAddress address, std::uint16_t vlan) {
        constexpr std::uint64_t every = std::uint64_t{1} << 60;
        return vlan == kEveryVlan ? every | address.value << 12 : address.value << 12 | vlan;
    }
    [[nodiscard]] std::size_t place_of(std::uint64_t key) const;
    [[nodiscard]] bool is_old(const Entry& entry, base::Time now) const {
        return !entry.is_fixed && now - entry.seen > config_.ageing;
    }
    [[nodiscard]] const Entry* known(std::uint64_t key) const;
    [[nodiscard]] Entry* known(std::uint64_t key) {
        return const_cast<Entry*>(static_cast<const MacTable*>(this)->known(key));
    }
    /// Entry that applies to an address in a VLAN: the fixed one of the VLAN, else the fixed one of
    /// every VLAN, else the learned one; null if there is none.
    [[nodiscard]] const Entry* valid(MacAddress address, std::uint16_t vlan) const;
    /// Null: there is none. That of an address that is too old is free.
    Entry* free_place(std::uint64_t key, base::Time now);
    /// Place of a learned address at the port that has most of them, if those are more than `than`;
    /// null: there is none.
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
    std::uint32_t reserve_;  ///< addresses of a port for which a full table makes room
    std::size_t fixed_in_every_vlan_ = 0;
    MacTableCounters counters_;
};

}  // namespace daqloom::softswitch

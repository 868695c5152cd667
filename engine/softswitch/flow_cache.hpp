// Cache of forwarding decisions by headers: most frames have the headers of an earlier frame.
//
// Only IPv4 without options is cached, as the first 38 bytes then decide where a frame goes. Fields
// that differ from packet to packet (length, identification, checksums, …) are masked.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "softswitch/flow_table.hpp"
#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

/// Masked headers of a frame, and its ingress port.
struct FlowKey {
    std::array<std::uint64_t, 5> words{};
    std::uint32_t hash = 0;
    bool is_flow = false;  ///< whether it can be cached; else the other fields are unspecified

    /// Sets the key. Each word is read, masked and written once, as reading back would stall.
    void set(std::span<const std::uint8_t> frame, PortIndex ingress) {
        static_assert(std::endian::native == std::endian::little);
        if (frame.size() < sizeof(words)) [[unlikely]] {
            is_flow = false;
            return;
        }
        const auto word = [&frame](std::size_t number) {
            std::uint64_t value = 0;
            std::memcpy(&value, frame.data() + 8 * number, 8);
            return value;
        };
        constexpr std::uint64_t ipv4 = std::uint64_t{0x450008} << 32;  // type, version and length
        constexpr std::uint64_t is_ipv4 = std::uint64_t{0xffffff} << 32;
        const std::uint64_t address = word(0);
        const std::uint64_t type = word(1) & 0x00ffffffffffffff;  // type of service masked
        const std::uint64_t protocol = (word(2) & 0xff00ffff00000000) | ingress.value();
        const std::uint64_t to = word(3) & 0xffff000000000000;     // first half of the address
        const std::uint64_t ports = word(4) & 0x0000ffffffffffff;  // second half, and ports
        const std::uint64_t mixed =
            ((address ^ std::rotl(type, 23)) + (protocol ^ to ^ std::rotl(ports, 7))) *
            0x9e3779b97f4a7c15;
        words = {address, type, protocol, to, ports};
        hash = static_cast<std::uint32_t>(mixed >> 32);
        is_flow = (type & is_ipv4) == ipv4;
    }
};

/// A direct-mapped cache: of two flows with the same place, the later flow replaces the earlier.
class FlowCache {
  public:
    struct alignas(64) Flow {
        std::array<std::uint64_t, 5> words{};
        base::Time until{-1};  ///< end of the validity of the decision
        RingIndex ring{};
        FlowIndex entry = FlowIndex::none();  ///< entry of the flow table that counts the frames
        std::uint32_t generation = 0;
    };
    static_assert(sizeof(Flow) == 64);

    /// `flows`: a power of two.
    explicit FlowCache(std::size_t flows)
        : flows_(flows), shift_(static_cast<std::uint32_t>(33 - std::bit_width(flows))) {}

    void prefetch(const FlowKey& key) const { __builtin_prefetch(&flows_[place(key)]); }
    /// Returns null if no decision is cached, or if the decision has expired.
    [[nodiscard]] const Flow* find(const FlowKey& key, base::Time now) const {
        const Flow& flow = flows_[place(key)];
        std::uint64_t differs = flow.generation ^ generation_;
        for (std::size_t i = 0; i < key.words.size(); ++i) {
            differs |= flow.words[i] ^ key.words[i];  // no branch per word
        }
        return differs == 0 && now <= flow.until ? &flow : nullptr;
    }
    void put(const FlowKey& key, RingIndex ring, FlowIndex entry, base::Time until) {
        flows_[place(key)] = {key.words, until, ring, entry, generation_};
    }
    /// Invalidates all decisions.
    void forget() { ++generation_; }

  private:
    [[nodiscard]] std::size_t place(const FlowKey& key) const {
        return key.hash >> shift_;  // the highest bits depend on the whole key
    }

    std::vector<Flow> flows_;
    std::uint32_t shift_;
    std::uint32_t generation_ = 1;
};

}  // namespace daqloom::softswitch

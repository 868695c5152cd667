// What was decided of frames with the same headers: most frames are like one of those before.
//
// Of IPv4 without options, 38 bytes say where a frame goes; what differs from packet to packet
// (length, identification, checksums, …) is masked away. All else is looked at anew each time.
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

/// The masked headers of a frame, and where it came in.
struct FlowKey {
    std::array<std::uint64_t, 5> words{};
    std::uint32_t hash = 0;
    bool is_flow = false;  ///< else it is none that is remembered, and the rest says nothing

    /// Each word is read, masked and written once: a copy of what has just been written in parts
    /// would wait for it.
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
        const std::uint64_t type = word(1) & 0x00ffffffffffffff;  // without type of service
        const std::uint64_t protocol = (word(2) & 0xff00ffff00000000) | ingress.value();
        const std::uint64_t to = word(3) & 0xffff000000000000;     // the first half of it
        const std::uint64_t ports = word(4) & 0x0000ffffffffffff;  // and the second half
        const std::uint64_t mixed =
            ((address ^ std::rotl(type, 23)) + (protocol ^ to ^ std::rotl(ports, 7))) *
            0x9e3779b97f4a7c15;
        words = {address, type, protocol, to, ports};
        hash = static_cast<std::uint32_t>(mixed >> 32);
        is_flow = (type & is_ipv4) == ipv4;
    }
};

/// One place for each hash: of two flows that want the same one the later has it.
class FlowCache {
  public:
    struct alignas(64) Flow {
        std::array<std::uint64_t, 5> words{};
        base::Time until{-1};  ///< what was decided holds no longer
        RingIndex ring{};
        FlowIndex entry = FlowIndex::none();  ///< of the flow table, which counts it
        std::uint32_t generation = 0;
    };
    static_assert(sizeof(Flow) == 64);

    /// `flows`: a power of two.
    explicit FlowCache(std::size_t flows)
        : flows_(flows), shift_(static_cast<std::uint32_t>(33 - std::bit_width(flows))) {}

    void prefetch(const FlowKey& key) const { __builtin_prefetch(&flows_[place(key)]); }
    /// Null: nothing is known, or what was has to be decided anew.
    [[nodiscard]] const Flow* find(const FlowKey& key, base::Time now) const {
        const Flow& flow = flows_[place(key)];
        std::uint64_t differs = flow.generation ^ generation_;
        for (std::size_t i = 0; i < key.words.size(); ++i) {
            differs |= flow.words[i] ^ key.words[i];  // without a branch for each
        }
        return differs == 0 && now <= flow.until ? &flow : nullptr;
    }
    void put(const FlowKey& key, RingIndex ring, FlowIndex entry, base::Time until) {
        flows_[place(key)] = {key.words, until, ring, entry, generation_};
    }
    /// Nothing of what was decided holds any more.
    void forget() { ++generation_; }

  private:
    [[nodiscard]] std::size_t place(const FlowKey& key) const {
        return key.hash >> shift_;  // its highest bits depend on all of the key
    }

    std::vector<Flow> flows_;
    std::uint32_t shift_;
    std::uint32_t generation_ = 1;
};

}  // namespace daqloom::softswitch

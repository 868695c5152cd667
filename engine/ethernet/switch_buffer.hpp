// The packet buffer of a switch: the admission of frames.
//
//   infinite       takes everything and records its peak
//   drop_tail      a first-in first-out queue per output, bounded in packets or bytes
//   shared_memory  cells, first from the output's dedicated part, then from the pool that all
//                  outputs share: see softswitch/shared_memory.hpp
//   voq            one large buffer; queues per pair of input and output
//   software       a software switch, whose rings decide: see software_switch.hpp
//
// This class only counts. `fits` may be called while departed frames are still counted: a frame
// that fits then does fit; only a drop needs counters that are up to date.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/software_switch_config.hpp"
#include "softswitch/shared_memory.hpp"

namespace daqloom::ethernet {

enum class BufferModel : std::uint8_t { infinite, drop_tail, shared_memory, voq, software };

struct SwitchConfig {
    BufferModel model = BufferModel::infinite;
    base::Bytes buffer = 0;             ///< all of it; 0: not bounded (drop_tail)
    base::Bytes dedicated = 0;          ///< of that, spread evenly over `dedicated_ports`
    std::uint32_t dedicated_ports = 0;  ///< 0: the ports that are wired
    double alpha = 1.0;
    base::Bytes port_limit = 0;       ///< for one output (voq: one queue); 0: none
    base::Bytes cell_size = 0;        ///< 0: counted by the byte
    base::Bytes cell_metadata = 0;    ///< taken from the first cell of a packet
    std::uint32_t queue_packets = 0;  ///< drop_tail, for one output; 0: none
    base::Bytes ecn_threshold = 0;    ///< mark what finds more than this queued; 0: never
    Schedule schedule;                ///< of its outputs
    SoftwareSwitchConfig software;    ///< of a software switch
    std::uint32_t hash_seed = 0;      ///< of the ECMP hash, see link_of_flow
};

class SwitchBuffer {
  public:
    struct Port {
        base::Bytes held = 0;
        std::uint32_t frames = 0;
        std::uint64_t drops = 0;
        base::Bytes dropped_bytes = 0;
    };

    SwitchBuffer(const SwitchConfig& config, std::uint32_t ports);

    [[nodiscard]] bool fits(std::uint32_t port, base::Bytes frame) const {
        switch (config_.model) {
            case BufferModel::infinite:
            case BufferModel::software:
                return true;
            case BufferModel::drop_tail:
                return ports_[port].frames < queue_frames_ &&
                       ports_[port].held + frame <= port_limit_ && held_ + frame <= buffer_;
            case BufferModel::shared_memory:
                return memory_.fits(port, frame);
            case BufferModel::voq:
                return held_ + frame <= buffer_;
        }
        return false;
    }

    void charge(std::uint32_t port, base::Bytes frame) {
        Port& p = ports_[port];
        p.held += frame;
        p.frames += 1;
        held_ += frame;
        if (config_.model == BufferModel::shared_memory) {
            memory_.charge(port, frame);
        }
    }

    /// Inlined wherever it is called from: every hop does.
    [[gnu::always_inline]] void release(std::uint32_t port, base::Bytes frame) {
        Port& p = ports_[port];
        p.held -= frame;
        p.frames -= 1;
        held_ -= frame;
        if (config_.model == BufferModel::shared_memory) {
            memory_.release(port, frame);
        }
    }

    void count_drop(std::uint32_t port, base::Bytes frame) {
        ports_[port].drops += 1;
        ports_[port].dropped_bytes += frame;
    }

    [[nodiscard]] const SwitchConfig& config() const { return config_; }
    [[nodiscard]] const Port& port(std::uint32_t index) const { return ports_[index]; }
    [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }
    /// Bytes of frames held in all.
    [[nodiscard]] base::Bytes held() const { return held_; }
    /// What shared_memory counts; else nothing.
    [[nodiscard]] const softswitch::SharedMemory& memory() const { return memory_; }

  private:
    SwitchConfig config_;
    std::vector<Port> ports_;
    base::Bytes held_ = 0;
    base::Bytes buffer_;
    std::uint32_t queue_frames_;
    base::Bytes port_limit_;
    softswitch::SharedMemory memory_;
};

}  // namespace daqloom::ethernet

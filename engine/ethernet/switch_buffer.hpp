// The packet buffer of a switch: the admission of frames.
//
//   infinite       takes everything and records its peak
//   drop_tail      a first-in first-out queue per output, bounded in packets or bytes
//   shared_memory  cells, first from the output's dedicated part, then from the pool that all
//                  outputs share: see softswitch/shared_memory.hpp
//   voq            one large buffer; queues per pair of input and output
//   software       a software switch, whose rings decide: see software_switch.hpp
//
// This class only counts. `fits` may be called while departed frames are still counted: a positive
// answer is then still valid, and only a negative one must be repeated with up-to-date counters.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/software_switch_config.hpp"
#include "softswitch/shared_memory.hpp"

namespace daqloom::ethernet {

enum class BufferModel : std::uint8_t { infinite, drop_tail, shared_memory, voq, software };

struct SwitchConfig {
    DAQLOOM_FIELDS(
        SwitchConfig, (BufferModel, model, "Frames that the buffer admits.", BufferModel::infinite),
        (base::Bytes, buffer, "Whole buffer (B); 0: not bounded (drop_tail)."),
        (base::Bytes, dedicated, "Part spread evenly over `dedicated_ports` (B)."),
        (std::uint32_t, dedicated_ports, "Ports that share this part; 0: those wired."),
        (double, alpha, "Dynamic threshold: share of the free shared pool for one output.", 1.0),
        (base::Bytes, port_limit, "Limit of one output, in voq of one queue (B); 0: none."),
        (base::Bytes, cell_size, "Size of a cell (B); 0: counted by the byte."),
        (base::Bytes, cell_metadata, "Metadata in the first cell of a packet (B)."),
        (std::uint32_t, queue_packets, "Packets of one output of drop_tail; 0: no limit."),
        (base::Bytes, ecn_threshold, "Frames that find more queued are marked (B); 0: never."),
        (Schedule, schedule, "Sharing of the outputs' wires among classes."),
        (SoftwareSwitchConfig, software, "Rings, pace and costs of a software switch."),
        (std::uint32_t, hash_seed, "Seed of the ECMP hash, see link_of_flow."))
};

class SwitchBuffer {
  public:
    struct Port {
        base::Bytes held = 0;
        std::uint32_t frames = 0;
        std::uint64_t drops = 0;
        base::Bytes dropped_bytes = 0;
    };

    SwitchBuffer(const SwitchConfig& config, std::uint32_t ports)
        : config_(config),
          ports_(ports),
          buffer_(or_unlimited(config.buffer)),
          queue_frames_(or_unlimited(config.queue_packets)),
          port_limit_(or_unlimited(config.port_limit)),
          memory_({.buffer = config.buffer,
                   .dedicated = config.dedicated,
                   .dedicated_ports = config.dedicated_ports,
                   .alpha = config.alpha,
                   .port_limit = config.port_limit,
                   .cell_size = config.cell_size,
                   .cell_metadata = config.cell_metadata},
                  ports) {}

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

    /// Always inlined: called in every hop.
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
    /// Bytes of all frames held.
    [[nodiscard]] base::Bytes held() const { return held_; }
    /// Counters of shared_memory; unused by other models.
    [[nodiscard]] const softswitch::SharedMemory& memory() const { return memory_; }

  private:
    template <class T>
    static T or_unlimited(T limit) {
        return limit == 0 ? std::numeric_limits<T>::max() / 2 : limit;
    }

    SwitchConfig config_;
    std::vector<Port> ports_;
    base::Bytes held_ = 0;
    base::Bytes buffer_;
    std::uint32_t queue_frames_;
    base::Bytes port_limit_;
    softswitch::SharedMemory memory_;
};

}  // namespace daqloom::ethernet

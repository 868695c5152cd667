// The packet buffer of a switch: the admission of frames.
//
//   infinite       takes everything and records its peak
//   drop_tail      a first-in first-out queue per output, bounded in packets or bytes
//   shared_memory  cells, first from the output's dedicated part, then from the pool that all
//                  outputs share, up to alpha × what is free of it (Choudhury and Hahne, 1998)
//   voq            one large buffer; queues per pair of input and output
//   software       a software switch, whose rings decide: see software_switch.hpp
//
// This class only counts. `fits` may be called while departed frames are still counted: a frame
// that fits then does fit; only a drop needs counters that are up to date.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/software_switch_config.hpp"

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
    std::uint32_t hash_seed = 0;      ///< of the choice among links that lead to the same host
};

class SwitchBuffer {
  public:
    struct Port {
        base::Bytes held = 0;
        std::uint32_t frames = 0;
        std::int64_t cells = 0;  ///< of shared memory; bytes if it has no cells
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
                return fits_in_shared_memory(ports_[port], frame);
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
            const std::int64_t cells = cells_of(frame);
            shared_used_ -= beyond_dedicated(p.cells);
            p.cells += cells;
            shared_used_ += beyond_dedicated(p.cells);
            cells_taken_ += cells;
        }
    }

    /// Inlined wherever it is called from: every hop does.
    [[gnu::always_inline]] void release(std::uint32_t port, base::Bytes frame) {
        Port& p = ports_[port];
        p.held -= frame;
        p.frames -= 1;
        held_ -= frame;
        if (config_.model == BufferModel::shared_memory) {
            const std::int64_t cells = cells_of(frame);
            shared_used_ -= beyond_dedicated(p.cells);
            p.cells -= cells;
            shared_used_ += beyond_dedicated(p.cells);
            cells_freed_ += cells;
        }
    }

    /// The smallest `buffer` with which this switch would have admitted the frame charged last to
    /// this port, with everything else unchanged: the pool holds what is used beyond the dedicated
    /// parts, and enough of it is free that the frame fits and the port was below its threshold.
    /// For shared memory; exact if the counters are up to date, otherwise an upper bound.
    [[nodiscard]] base::Bytes least_buffer(std::uint32_t port, base::Bytes frame) const {
        const std::int64_t cells = ports_[port].cells;
        const std::int64_t used_by_port = beyond_dedicated(cells - cells_of(frame));
        const std::int64_t more = beyond_dedicated(cells) - used_by_port;
        if (more == 0) {
            return config_.dedicated;
        }
        const auto above_threshold =
            static_cast<std::int64_t>(static_cast<double>(used_by_port) / config_.alpha) + 1;
        const std::int64_t pool = shared_used_ - more + std::max(more, above_threshold);
        return config_.dedicated + pool * cell_bytes_;
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
    /// Cells a frame occupies; bytes where memory is not divided into cells.
    [[nodiscard]] std::int64_t cells_of(base::Bytes frame) const {
        return config_.cell_size == 0
                   ? frame
                   : (frame + config_.cell_metadata + config_.cell_size - 1) / config_.cell_size;
    }
    [[nodiscard]] std::int64_t shared_cells_used() const { return shared_used_; }
    [[nodiscard]] std::int64_t shared_cells() const { return pool_; }
    [[nodiscard]] std::int64_t cells_taken() const { return cells_taken_; }
    [[nodiscard]] std::int64_t cells_freed() const { return cells_freed_; }

  private:
    [[nodiscard]] std::int64_t beyond_dedicated(std::int64_t cells) const {
        return cells > dedicated_ ? cells - dedicated_ : 0;
    }

    [[nodiscard]] bool fits_in_shared_memory(const Port& port, base::Bytes frame) const {
        const std::int64_t cells = port.cells + cells_of(frame);
        if (cells > port_limit_) {
            return false;
        }
        if (cells <= dedicated_) {
            return true;
        }
        const std::int64_t used_by_port = beyond_dedicated(port.cells);
        const std::int64_t free = pool_ - shared_used_;
        return beyond_dedicated(cells) - used_by_port <= free &&
               static_cast<double>(used_by_port) < config_.alpha * static_cast<double>(free);
    }

    SwitchConfig config_;
    std::vector<Port> ports_;
    base::Bytes held_ = 0;
    base::Bytes buffer_;
    std::uint32_t queue_frames_;

    // ---- in cells for shared memory, in bytes otherwise
    std::int64_t cell_bytes_ = 1;
    std::int64_t port_limit_;
    std::int64_t dedicated_ = 0;  ///< of each port
    std::int64_t pool_ = 0;
    std::int64_t shared_used_ = 0;
    std::int64_t cells_taken_ = 0;
    std::int64_t cells_freed_ = 0;
};

}  // namespace daqloom::ethernet

// The packet memory of a switch, shared by all outputs. A frame is admitted first to cells of its
// output's dedicated part, then to cells of the pool, up to alpha × the free cells of the pool
// (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998).
//
// The class only does accounting, for simulated switches and software switches that emulate them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::softswitch {

struct SharedMemoryConfig {
    DAQLOOM_FIELDS(SharedMemoryConfig, (base::Bytes, buffer, "Size of the memory (B)."),
                   (base::Bytes, dedicated, "Part spread evenly over `dedicated_ports` (B)."),
                   (std::uint32_t, dedicated_ports, "Ports that share the dedicated part; 0: all."),
                   (double, alpha, "Dynamic threshold: share of the free rest for one output.",
                    1.0),
                   (base::Bytes, port_limit, "Limit of one output (B); 0: none."),
                   (base::Bytes, cell_size, "Size of a cell (B); 0: counted by the byte."),
                   (base::Bytes, cell_metadata, "Metadata in the first cell of a packet (B)."))
};

class SharedMemory {
  public:
    SharedMemory(const SharedMemoryConfig& config, std::uint32_t ports)
        : config_(config), cells_(ports) {
        cell_bytes_ = config.cell_size == 0 ? 1 : config.cell_size;
        const std::uint32_t sharers = config.dedicated_ports == 0 ? ports : config.dedicated_ports;
        dedicated_ = config.dedicated / std::max<std::uint32_t>(sharers, 1) / cell_bytes_;
        pool_ = (config.buffer - config.dedicated) / cell_bytes_;
        if (config.port_limit != 0) {
            port_limit_ = config.port_limit / cell_bytes_;
        }
    }

    [[nodiscard]] bool fits(std::uint32_t port, base::Bytes frame) const {
        const std::int64_t cells = cells_[port] + cells_of(frame);
        if (cells > port_limit_) {
            return false;
        }
        if (cells <= dedicated_) {
            return true;
        }
        const std::int64_t used_by_port = beyond_dedicated(cells_[port]);
        const std::int64_t free = pool_ - used_;
        return beyond_dedicated(cells) - used_by_port <= free &&
               static_cast<double>(used_by_port) < config_.alpha * static_cast<double>(free);
    }
    void charge(std::uint32_t port, base::Bytes frame) {
        const std::int64_t cells = cells_of(frame);
        add(cells_[port], cells);
        taken_ += cells;
    }
    [[gnu::always_inline]] void release(std::uint32_t port, base::Bytes frame) {
        const std::int64_t cells = cells_of(frame);
        add(cells_[port], -cells);
        freed_ += cells;
    }

    /// The smallest `buffer` with which this memory would have admitted the frame last charged to
    /// this port, everything else being equal: the pool holds all cells used beyond dedicated
    /// parts, and has enough free cells for the frame to fit and for the port to be below its
    /// threshold. Exact if the counters are up to date, otherwise an upper bound.
    [[nodiscard]] base::Bytes least_buffer(std::uint32_t port, base::Bytes frame) const {
        const std::int64_t cells = cells_[port];
        const std::int64_t used_by_port = beyond_dedicated(cells - cells_of(frame));
        const std::int64_t more = beyond_dedicated(cells) - used_by_port;
        if (more == 0) {
            return config_.dedicated;
        }
        const auto above_threshold =
            static_cast<std::int64_t>(static_cast<double>(used_by_port) / config_.alpha) + 1;
        const std::int64_t pool = used_ - more + std::max(more, above_threshold);
        return config_.dedicated + pool * cell_bytes_;
    }

    /// Cells of a frame; the frame's bytes if memory is not divided into cells.
    [[nodiscard]] std::int64_t cells_of(base::Bytes frame) const {
        return config_.cell_size == 0
                   ? frame
                   : (frame + config_.cell_metadata + config_.cell_size - 1) / config_.cell_size;
    }
    /// Cells of all ports.
    [[nodiscard]] std::int64_t held() const {
        return std::accumulate(cells_.begin(), cells_.end(), std::int64_t{0});
    }
    [[nodiscard]] std::int64_t cells(std::uint32_t port) const { return cells_[port]; }
    /// Cells used of the pool.
    [[nodiscard]] std::int64_t used() const { return used_; }
    [[nodiscard]] std::int64_t pool() const { return pool_; }
    [[nodiscard]] std::int64_t taken() const { return taken_; }
    [[nodiscard]] std::int64_t freed() const { return freed_; }

  private:
    [[nodiscard]] std::int64_t beyond_dedicated(std::int64_t cells) const {
        return cells > dedicated_ ? cells - dedicated_ : 0;
    }
    void add(std::int64_t& of_port, std::int64_t cells) {
        used_ -= beyond_dedicated(of_port);
        of_port += cells;
        used_ += beyond_dedicated(of_port);
    }

    SharedMemoryConfig config_;
    std::vector<std::int64_t> cells_;  ///< of each port
    std::int64_t cell_bytes_ = 1;
    std::int64_t port_limit_ = std::numeric_limits<std::int64_t>::max() / 2;
    std::int64_t dedicated_ = 0;  ///< of each port
    std::int64_t pool_ = 0;
    std::int64_t used_ = 0;
    std::int64_t taken_ = 0;
    std::int64_t freed_ = 0;
};

}  // namespace daqloom::softswitch

// A software switch, as a description has it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct SoftwareSwitchConfig {
    std::uint32_t ring_packets = 4096;      ///< of each ring
    base::BitRate pace{0};                  ///< of each ring of a destination; 0: none
    bool pace_counts_wire = true;           ///< bits on the wire, else those of IP
    std::vector<NodeIndex> destinations{};  ///< hosts that have a ring of their own
    std::uint32_t cores = 1;
    base::Time packet_cost{};         ///< of a core, for each frame
    base::Time batch_cost{};          ///< and for each batch from an input or to an output
    std::uint32_t descriptors = 512;  ///< of each port in each direction
    /// Of the memory, which each byte of a frame crosses twice; 0: not limited.
    base::BitRate memory{0};
    /// Packets in a ring of a destination above which it pauses the ports by which more come; 0: it
    /// never does. Needs a single core.
    std::uint32_t pause_packets = 0;
};

}  // namespace daqloom::ethernet

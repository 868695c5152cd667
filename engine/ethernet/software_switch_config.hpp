// The configuration of a software switch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct SoftwareSwitchConfig {
    DAQLOOM_FIELDS(
        SoftwareSwitchConfig, (std::uint32_t, ring_packets, "Packets that a ring holds.", 4096),
        (base::BitRate, pace, "Pace of each ring of a destination; 0: none."),
        (bool, pace_counts_wire, "The pace counts bits on the wire, else those of IP.", true),
        (std::vector<NodeIndex>, destinations, "Hosts that have a ring of their own."),
        (std::uint32_t, cores, "Cores; each serves its share of the ports.", 1),
        (base::Time, packet_cost, "Time of a core for each frame."),
        (base::Time, batch_cost, "Time for each batch from an input or to an output, besides."),
        (std::uint32_t, descriptors, "Descriptors of each port in each direction.", 512),
        (base::BitRate, memory_bandwidth,
         "Bandwidth of the memory, which each byte of a frame crosses twice; 0: no limit."),
        (std::uint32_t, pause_at,
         "Packets in a ring of a destination above which it pauses the ports by which more come; "
         "0: never. Needs a single core."))
};

}  // namespace daqloom::ethernet

// What the switch knows of a packet that it holds.
#pragma once

#include <cstdint>

#include "base/index.hpp"
#include "base/units.hpp"

namespace daqloom::softswitch {

using PortIndex = base::Index<struct SwitchPortTag, std::uint16_t>;
/// Of a ring: packets of one destination, or of one class of a port.
using RingIndex = base::Index<struct SwitchRingTag>;

/// Its content is whose who drives the switch: a buffer of DPDK, a frame of a simulation.
struct Packet {
    std::uint64_t handle = 0;
    std::uint32_t bytes = 0;  ///< from the destination address on, without the frame check sequence
    RingIndex ring;           ///< to which it goes
};
static_assert(sizeof(Packet) == 16);

}  // namespace daqloom::softswitch

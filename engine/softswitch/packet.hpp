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

/// What a core of the switch tells another one: a frame for a ring of that, or where an address is.
struct Message {
    enum class What : std::uint16_t { frame, address };
    Packet packet;  ///< of an address: it, as the handle, and its VLAN, as the bytes
    PortIndex ingress{};
    What what = What::frame;
};

/// Of several cores, each of which has a forwarder of its own: that of this number has the rings of
/// each port whose number has this remainder.
struct Share {
    std::uint32_t number = 0;
    std::uint32_t of = 1;

    [[nodiscard]] std::uint32_t core_of(PortIndex port) const { return port.value() % of; }
};

}  // namespace daqloom::softswitch

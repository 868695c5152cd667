// Descriptors of packets held by the switch, and messages between its cores.
#pragma once

#include <cstdint>

#include "base/index.hpp"
#include "base/units.hpp"

namespace daqloom::softswitch {

using PortIndex = base::Index<struct SwitchPortTag, std::uint16_t>;
/// Index of a ring, which holds the packets for one destination, or for one class of a port.
using RingIndex = base::Index<struct SwitchRingTag>;

/// A packet. The caller owns the content behind the handle, a DPDK buffer or a simulated frame.
struct Packet {
    std::uint64_t handle = 0;
    std::uint32_t bytes = 0;  ///< from the destination address on, without the frame check sequence
    RingIndex ring;           ///< destination ring
};
static_assert(sizeof(Packet) == 16);

/// Message between cores of the switch: a frame for a ring of the receiver, or a learned address.
struct Message {
    enum class What : std::uint16_t { frame, address };
    Packet packet;  ///< for `address`: handle = address, bytes = VLAN
    PortIndex ingress{};
    What what = What::frame;
};

/// Share of the switch that one core has, with a separate forwarder: core `number` of `cores` owns
/// the rings of the ports with port % cores == number.
struct Share {
    std::uint32_t number = 0;
    std::uint32_t cores = 1;

    [[nodiscard]] std::uint32_t core_of(PortIndex port) const { return port.value() % cores; }
};

}  // namespace daqloom::softswitch

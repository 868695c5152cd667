// A TCP segment in its Ethernet frame, as queues store it.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::ethernet {

/// As in network::Graph; 24 bits in a frame.
using HostIndex = std::uint32_t;
using EndpointIndex = std::uint32_t;
using LinkIndex = std::uint32_t;
inline constexpr LinkIndex kNoLink = 0xffffffff;

/// Ethernet header and frame check sequence: buffered together with the packet.
inline constexpr base::Bytes kFrameOverhead = 14 + 4;
/// Preamble, start delimiter and inter-frame gap: they occupy the wire and are never buffered.
inline constexpr base::Bytes kWireOverhead = 8 + 12;
/// The smallest frame Ethernet allows, frame check sequence included.
inline constexpr base::Bytes kMinimumFrame = 64;

// ---- marks of a frame
inline constexpr std::uint8_t kEcnCapable = 1;             ///< ECT: a switch may mark it
inline constexpr std::uint8_t kCongestionExperienced = 2;  ///< CE: a switch has marked it
inline constexpr std::uint8_t kEcnEcho = 4;                ///< ECE: the receiver saw a mark
inline constexpr std::uint8_t kDuplicate = 8;  ///< D-SACK: its first SACK block came a second time
inline constexpr std::uint8_t kRetransmission = 16;

/// No SACK blocks travel with the frame.
inline constexpr std::uint32_t kNoSack = 0xffffffff;

/// Moved by value from queue to queue; half a cache line. Payload bytes are not stored: the frame
/// has their number and their offset in the stream.
struct Frame {
    base::Time at;          ///< when it has reached the far end of its link, gap included
    std::uint32_t seq;      ///< low 32 bits of the stream offset of the first payload byte
    std::uint32_t ack;      ///< low 32 bits of the next offset expected from the peer
    EndpointIndex to;       ///< the endpoint that receives it; `to ^ 1` sent it
    std::uint32_t sack;     ///< slot of its SACK blocks, or kNoSack
    std::uint16_t payload;  ///< TCP payload, bytes
    std::uint16_t bytes;    ///< frame as buffered: headers, payload and FCS
    std::uint32_t address;  ///< host to which it goes, and its marks

    [[nodiscard]] HostIndex destination() const { return address & 0xffffff; }
    [[nodiscard]] bool has(unsigned marks) const { return (address >> 24 & marks) != 0; }
    void mark(unsigned marks) { address |= marks << 24; }
    void send_to(HostIndex host, unsigned marks) { address = host | marks << 24; }
};
static_assert(sizeof(Frame) == 32);  // without a hole, a copy is two whole moves

}  // namespace daqloom::ethernet

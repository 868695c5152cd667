// A TCP segment in its Ethernet frame, as queues store it.
#pragma once

#include <cstdint>

#include "base/index.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"

namespace daqloom::ethernet {

using network::NodeIndex;
using network::SwitchIndex;
using LinkIndex = base::Index<struct LinkTag>;
using EndpointIndex = base::Index<struct EndpointTag>;
/// Traffic class of a frame, 0 … 7, on ports with a queue per class; 7 has the highest priority.
using TrafficClass = network::Lane;
inline constexpr std::uint8_t kTrafficClasses = 8;

/// Endpoints come in pairs: 2c and 2c + 1 are the two ends of connection c.
constexpr std::uint32_t connection(EndpointIndex endpoint) { return endpoint.value() >> 1; }
/// The other end of its connection.
constexpr EndpointIndex peer(EndpointIndex endpoint) {
    return EndpointIndex(endpoint.value() ^ 1U);
}
/// The endpoint that opened the connection; its number is even.
constexpr EndpointIndex opener(EndpointIndex endpoint) {
    return EndpointIndex(endpoint.value() & ~1U);
}

/// Ethernet header and frame check sequence, which a buffer holds together with the packet.
inline constexpr base::Bytes kFrameOverhead = 14 + 4;
/// Preamble, start delimiter and inter-frame gap, which occupy the wire and are never buffered.
inline constexpr base::Bytes kWireOverhead = 8 + 12;
/// The smallest frame that Ethernet allows, frame check sequence included.
inline constexpr base::Bytes kMinimumFrame = 64;

// ---- marks of a frame
inline constexpr std::uint8_t kEcnCapable = 1;             ///< ECT: a switch may mark it
inline constexpr std::uint8_t kCongestionExperienced = 2;  ///< CE: a switch has marked it
inline constexpr std::uint8_t kEcnEcho = 4;                ///< ECE: the receiver saw a mark
inline constexpr std::uint8_t kDuplicate = 8;  ///< D-SACK: its first SACK block came a second time
inline constexpr std::uint8_t kRetransmission = 16;  ///< 32, 64 and 128 are the class

/// No SACK blocks travel with the frame.
inline constexpr std::uint32_t kNoSack = 0xffffffff;
/// Value of `Frame::sack` in a reset, which has no SACK blocks: the connection is over.
inline constexpr std::uint32_t kReset = 0xfffffffe;

/// Address field of a frame: destination host (24 bits) and class (3 bits); marks lie in between.
constexpr std::uint32_t address_of(NodeIndex host, TrafficClass traffic_class) {
    return host.value() | static_cast<std::uint32_t>(traffic_class.value()) << 29;
}
constexpr NodeIndex host_in(std::uint32_t address) { return NodeIndex(address & 0xffffff); }
constexpr TrafficClass class_in(std::uint32_t address) { return TrafficClass(address >> 29); }

/// A frame, half a cache line long, moved by value from queue to queue. Payload bytes are not
/// stored: the frame has only their number and their offset in the stream.
struct Frame {
    base::Time at;          ///< arrival at the far end of its link, gap included
    std::uint32_t seq;      ///< low 32 bits of the stream offset of the first payload byte
    std::uint32_t ack;      ///< low 32 bits of the next offset expected from the peer
    EndpointIndex to;       ///< the endpoint that receives it; its peer sent it
    std::uint32_t sack;     ///< slot of its SACK blocks, or kNoSack or kReset
    std::uint16_t payload;  ///< TCP payload, bytes
    std::uint16_t bytes;    ///< frame as buffered: headers, payload and FCS
    std::uint32_t address;  ///< destination host, 24 bits, marks, 5 bits, and class

    [[nodiscard]] TrafficClass traffic_class() const { return class_in(address); }
    [[nodiscard]] NodeIndex destination() const { return host_in(address); }
    [[nodiscard]] bool has_sack() const { return sack < kReset; }
    [[nodiscard]] bool has(unsigned marks) const { return (address >> 24 & marks) != 0; }
    void mark(unsigned marks) { address |= marks << 24; }
    void send_to(std::uint32_t host_and_class, unsigned marks) {
        address = host_and_class | marks << 24;
    }
};
static_assert(sizeof(Frame) == 32);  // without padding, a copy is two whole moves

}  // namespace daqloom::ethernet

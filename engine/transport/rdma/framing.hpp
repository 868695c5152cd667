// Overhead of RDMA packets (headers and gaps) on each network, and packet tags, which hold the
// queue pair and the packet type.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::transport {

struct RdmaFraming {
    /// Headers of every packet, as buffered.
    base::Bytes header = 0;
    /// Gap between packets on the wire, preamble included.
    base::Bytes gap = 0;

    /// Size of an acknowledgement packet, with its extended transport header of 4 B (AETH).
    [[nodiscard]] base::Bytes acknowledge() const { return header + 4; }
};

/// InfiniBand overhead in B: local route header 8, base transport header 12, CRCs 4 and 2
/// (InfiniBand Architecture Specification, volume 1, 5.2).
inline constexpr RdmaFraming kInfinibandFraming{26, 0};
/// RoCEv2 overhead in B: Ethernet 14, IPv4 20, UDP 8, base transport header 12, invariant CRC 4,
/// frame check sequence 4 (annex A17).
inline constexpr RdmaFraming kRoceFraming{62, 20};

inline constexpr base::Bytes kRdmaHeaderBytes = 16;  ///< first packet of an RDMA write
inline constexpr base::Bytes kImmediateBytes = 4;    ///< last packet, with immediate data

// ---- the tag of a packet

/// An acknowledgement of this packet and of all before.
inline constexpr std::uint32_t kAcknowledge = std::uint32_t{1} << 31;
/// A NAK: the packet with this PSN is missing, all packets before are acknowledged.
inline constexpr std::uint32_t kNak = std::uint32_t{1} << 30;
/// The packet requests an acknowledgement.
inline constexpr std::uint32_t kAckRequest = std::uint32_t{1} << 29;
inline constexpr std::uint32_t kQueuePair = kAckRequest - 1;

/// Whether the packet goes from the responder to the requester.
constexpr bool is_response(std::uint32_t tag) { return (tag & (kAcknowledge | kNak)) != 0; }

}  // namespace daqloom::transport

// What a packet of RDMA carries besides its payload, by the network it goes over.
#pragma once

#include "base/units.hpp"

namespace daqloom::transport {

struct RdmaFraming {
    /// Of every packet, as it is buffered.
    base::Bytes header = 0;
    /// Between packets on the wire, preamble included.
    base::Bytes gap = 0;

    /// A packet that acknowledges: with an extended transport header of 4 B (AETH).
    [[nodiscard]] base::Bytes acknowledge() const { return header + 4; }
};

/// Local route header 8, base transport header 12, checks 4 and 2 (InfiniBand Architecture
/// Specification, volume 1, 5.2).
inline constexpr RdmaFraming kInfinibandFraming{26, 0};
/// RoCEv2: Ethernet 14, IPv4 20, UDP 8, base transport header 12, check of the payload 4, and the
/// frame check sequence 4 (annex A17).
inline constexpr RdmaFraming kRoceFraming{62, 20};

inline constexpr base::Bytes kRdmaHeaderBytes = 16;  ///< first packet of an RDMA write
inline constexpr base::Bytes kImmediateBytes = 4;    ///< last packet, with immediate data

}  // namespace daqloom::transport

// Segmentation of messages into packets (InfiniBand Architecture Specification, volume 1, 5.2, 9).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/index.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"
#include "transport/rdma/framing.hpp"

namespace daqloom::transport {

using network::NodeIndex;
using network::ServiceLevel;
using VirtualLane = network::Lane;

/// Index of a message in the table of unfinished messages of all hosts.
using MessageIndex = base::Index<struct MessageTag>;
/// Index of a queue pair in the table of queue pairs of all hosts.
using QueuePairIndex = base::Index<struct QueuePairTag>;

/// An RDMA write of a reliable connection.
struct Message {
    NodeIndex source;
    NodeIndex destination;
    base::Bytes bytes = 0;
    std::uint64_t tag = 0;  ///< identifier chosen by the caller
    VirtualLane lane;
    ServiceLevel service_level = 0;  ///< each level has its own queue pairs
    bool immediate = false;

    base::Bytes sent = 0;  ///< bytes handed to the wire
    base::Time posted;
    MessageIndex behind = MessageIndex::none();  ///< next message of this queue pair
    QueuePairIndex queue_pair;
    std::uint32_t first_psn = 0;  ///< PSN of its first packet
    std::uint32_t end_psn = 0;    ///< PSN behind its last packet

    [[nodiscard]] bool all_sent() const { return sent == bytes && begun; }
    bool begun = false;
    bool received = false;  ///< received as a whole

    [[nodiscard]] std::uint32_t packets(base::Bytes mtu) const {
        return static_cast<std::uint32_t>(std::max<base::Bytes>(1, (bytes + mtu - 1) / mtu));
    }
    /// Moves the send position to the packet with this PSN, which must belong to this message.
    void go_back(std::uint32_t psn, base::Bytes mtu) {
        sent = mtu * (psn - first_psn);
        begun = psn != first_psn;
    }

    /// Length of the next packet; its payload is padded to whole words.
    [[nodiscard]] base::Bytes next_packet(base::Bytes mtu, const RdmaFraming& framing) const {
        const base::Bytes payload = std::min(mtu, bytes - sent);
        return framing.header + (payload + 3) / 4 * 4 + (begun ? 0 : kRdmaHeaderBytes) +
               (immediate && sent + payload == bytes ? kImmediateBytes : 0);
    }
};

}  // namespace daqloom::transport

// What a network and the transport over it have counted.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.hpp"
#include "ethernet/report.hpp"
#include "infiniband/report.hpp"
#include "transport/rdma/config.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

/// Memory of the simulation, of what grows with the system and with its load (B). None of it is
/// given back before the end, so that it is also the most there was.
struct Memory {
    DAQLOOM_FIELDS(Memory, (std::uint64_t, connections, "Ends of connections, or queue pairs."),
                   (std::uint64_t, packets, "Packets queued or on the wire."),
                   (std::uint64_t, messages, "Messages under way."),
                   (std::uint64_t, events, "Pending events of the simulator."))
};

/// Each part where it exists.
struct Report {
    std::uint64_t packet_hops = 0;  ///< sent or delivered by all links together, over the whole run
    std::uint64_t ack_hops = 0;     ///< those among them of packets without payload
    Memory memory = {};
    std::optional<ethernet::Report> ethernet;
    std::optional<TcpSenderCounters> tcp;
    std::optional<infiniband::Report> infiniband;
    std::optional<RetryCounters> rdma;
};

}  // namespace daqloom::transport

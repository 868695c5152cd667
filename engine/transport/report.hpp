// Counts of a network and of the transport over it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.hpp"
#include "ethernet/report.hpp"
#include "infiniband/report.hpp"
#include "transport/rdma/config.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

/// Memory of the simulation's parts that grow with the number of hosts and the load (B). No memory
/// is released before the end of the run, so each value is also the peak.
struct Memory {
    DAQLOOM_FIELDS(Memory, (std::uint64_t, connections, "Ends of connections, or queue pairs."),
                   (std::uint64_t, packets, "Packets queued or on the wire."),
                   (std::uint64_t, messages, "Messages under way."),
                   (std::uint64_t, events, "Pending events of the simulator."))
};

/// Counts of a network and its transport; parts for an absent network or transport stay empty.
struct Report {
    std::uint64_t packet_hops = 0;  ///< sent or delivered by all links together, over the whole run
    std::uint64_t ack_hops = 0;     ///< packet hops without payload
    Memory memory = {};
    std::optional<ethernet::Report> ethernet;
    std::optional<TcpSenderCounters> tcp;
    std::optional<infiniband::Report> infiniband;
    std::optional<RetryCounters> rdma;
};

}  // namespace daqloom::transport

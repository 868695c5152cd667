// What a network and the transport over it have counted.
#pragma once

#include <cstdint>
#include <optional>

#include "ethernet/report.hpp"
#include "infiniband/report.hpp"
#include "transport/rdma/config.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

/// Memory of the simulation, of what grows with the system and with its load (B). None of it is
/// given back before the end, so that it is also the most there was.
struct Memory {
    std::uint64_t connections = 0;
    std::uint64_t packets = 0;
    std::uint64_t messages = 0;
    std::uint64_t events = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        see("connections", &Memory::connections, "Ends of connections, or queue pairs.");
        see("packets", &Memory::packets, "Packets queued or on the wire.");
        see("messages", &Memory::messages, "Messages under way.");
        see("events", &Memory::events, "Pending events of the simulator.");
    }
};

/// Each part where it exists.
struct Report {
    std::uint64_t packet_hops = 0;  ///< over the whole run
    std::uint64_t ack_hops = 0;     ///< those among them of packets without payload
    Memory memory = {};
    std::optional<ethernet::Report> ethernet;
    std::optional<TcpSenderCounters> tcp;
    std::optional<infiniband::Report> infiniband;
    std::optional<RetryCounters> rdma;
};

}  // namespace daqloom::transport

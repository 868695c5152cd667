// What a network and the transport over it have counted.
#pragma once

#include <cstdint>
#include <optional>

#include "ethernet/report.hpp"
#include "infiniband/report.hpp"
#include "transport/rdma/config.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

/// Each part where it exists.
struct Report {
    std::uint64_t packet_hops = 0;  ///< over the whole run
    std::uint64_t ack_hops = 0;     ///< those among them of packets without payload
    std::optional<ethernet::Report> ethernet;
    std::optional<TcpSenderCounters> tcp;
    std::optional<infiniband::Report> infiniband;
    std::optional<RetryCounters> rdma;
};

}  // namespace daqloom::transport

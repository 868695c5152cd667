// The settings of RDMA over reliable connections, and what its retransmissions count.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::transport {

struct RdmaConfig {
    base::Bytes mtu = 4096;   ///< payload of a packet
    bool acknowledge = true;  ///< else a message is complete when it has been received
    /// From the departure of a message's last packet until it is sent again; zero: nothing is ever
    /// sent again, and a queue pair that has lost a packet delivers nothing more.
    base::Time retry_timeout = {};
    /// Longest timeout, as a multiple of `retry_timeout`; each is drawn between the two.
    double retry_spread = 1;
    std::uint64_t seed = 1;         ///< of timeouts
    std::uint32_t retry_count = 7;  ///< retries in a row before a queue pair fails
};

/// Counters of losses and retries, over the whole run.
struct RetryCounters {
    DAQLOOM_FIELDS(RetryCounters,
                   (std::uint64_t, resent_for_nak, "Packets sent again after a NAK."),
                   (std::uint64_t, resent_for_timeout,
                    "Packets sent again after a retransmission timer expired."),
                   (std::uint64_t, timeouts, "Retransmission timers that have expired."),
                   (std::uint64_t, out_of_sequence,
                    "Packets that their receiver dropped: one before them had not come, or they "
                    "had come before."),
                   (std::uint64_t, writes_failed, "Messages of failed queue pairs."))
};

}  // namespace daqloom::transport

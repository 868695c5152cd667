// The settings of RDMA over reliable connections, and what its retransmissions count.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::transport {

struct RdmaConfig {
    base::Bytes mtu = 4096;   ///< payload of a packet
    bool acknowledge = true;  ///< else a message is complete when it has been received
    /// From the departure of a message's last packet until it is sent again; zero: nothing is ever
    /// sent again, and a queue pair that has lost a packet delivers nothing more.
    base::Time retry_timeout = {};
    std::uint32_t retry_count = 7;  ///< retries in a row before a queue pair fails
};

/// Counters of losses and retries, over the whole run.
struct RetryCounters {
    std::uint64_t resent_for_nak = 0;      ///< packets sent again after a NAK
    std::uint64_t resent_for_timeout = 0;  ///< packets sent again as a timer expired
    std::uint64_t timeouts = 0;            ///< retransmission timers that have expired
    std::uint64_t writes_failed = 0;       ///< messages of failed queue pairs

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using Retries = RetryCounters;
        see("resent_for_nak", &Retries::resent_for_nak, "Packets sent again after a NAK.");
        see("resent_for_timeout", &Retries::resent_for_timeout,
            "Packets sent again after a retransmission timer expired.");
        see("timeouts", &Retries::timeouts, "Retransmission timers that have expired.");
        see("writes_failed", &Retries::writes_failed, "Messages of failed queue pairs.");
    }
};

}  // namespace daqloom::transport

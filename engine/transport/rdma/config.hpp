// Settings of RDMA over reliable connections, and counters of its retransmissions.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::transport {

struct RdmaConfig {
    DAQLOOM_FIELDS(
        RdmaConfig, (base::Bytes, mtu, "Payload of a full packet (B).", 4096),
        (bool, acknowledge, "Receivers acknowledge; else a message is complete at its receiver.",
         true),
        (base::Time, retry_timeout,
         "Time from the departure of a message's last packet to its retransmission; 0: nothing is "
         "retransmitted, and a queue pair that has lost a packet delivers nothing more."),
        (double, retry_spread,
         "Longest timeout, as a multiple of `retry_timeout`; each is drawn between the two.", 1),
        (std::uint64_t, seed, "Seed of the timeouts.", 1),
        (std::uint32_t, retry_count, "Timeouts in a row after which a queue pair fails.", 7))
};

/// Counters of losses and retransmissions, over the whole run.
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

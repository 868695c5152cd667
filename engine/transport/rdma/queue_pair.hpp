// A queue pair (QP) of a reliable connection: its messages in order, packet sequence numbers (PSN),
// and the state of both ends (InfiniBand Architecture Specification, volume 1, 9.7).
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "transport/rdma/message.hpp"

namespace daqloom::transport {

/// Whether PSN `a` is before PSN `b`; PSNs wrap around.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
}

/// A queue pair from one host to another, for one service level on one virtual lane. The requester
/// sends messages, the responder acknowledges them.
struct alignas(64) QueuePair {
    NodeIndex source;
    NodeIndex destination;
    VirtualLane lane;
    bool in_turn : 1 = false;         ///< waits among its host's queue pairs with packets to send
    bool failed : 1 = false;          ///< after too many retries
    bool timer_pending : 1 = false;   ///< an event will check the retransmission timer
    bool timed_out : 1 = false;       ///< went back after a timeout, not after a NAK
    bool nak_sent : 1 = false;        ///< for the missing packet
    bool closed : 1 = false;          ///< closed by its requester
    bool responder_gone : 1 = false;  ///< arriving packets are dropped
    std::uint16_t timeouts = 0;       ///< in a row, without progress

    // ---- the responder

    MessageIndex receiving = MessageIndex::none();
    std::uint32_t expected_psn = 0;

    // ---- state of the requester; its messages are linked from the oldest to the last

    MessageIndex oldest = MessageIndex::none();
    MessageIndex sending = MessageIndex::none();  ///< message of the next packet
    MessageIndex last = MessageIndex::none();
    std::uint32_t next_psn = 0;              ///< next packet to send
    std::uint32_t end_psn = 0;               ///< packet behind the last message
    std::uint32_t unacknowledged_psn = 0;    ///< all packets before are acknowledged
    std::uint32_t requested_psn = 0;         ///< last packet sent with a request to acknowledge
    std::uint32_t unsent_psn = 0;            ///< first packet never sent
    base::Time timer = base::Time::never();  ///< when the retransmission timer expires
};
static_assert(sizeof(QueuePair) == 64);  // one cache line

}  // namespace daqloom::transport

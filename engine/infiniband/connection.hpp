// A reliable connection (queue pair) of two hosts: messages in order, their packets with packet
// sequence numbers (PSN), and the state of both ends (InfiniBand Architecture Specification, volume
// 1, 9.7).
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/message.hpp"

namespace daqloom::infiniband {

/// Whether one packet sequence number (PSN) is before another; they wrap around.
constexpr bool is_before(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0;
}

struct alignas(64) Connection {
    NodeIndex source = 0;
    NodeIndex destination = 0;
    VirtualLane lane = 0;
    bool in_turn = false;     ///< waits among those of its host that have something to send
    bool failed = false;      ///< after too many retries
    bool timer_set = false;   ///< an event will ask whether the deadline is over
    bool complained = false;  ///< the receiver has sent a NAK for the missing packet

    // The state of the receiver.
    MessageIndex receiving = kNoMessage;
    std::uint32_t expected = 0;  ///< sequence number of the next packet

    // The state of the sender. Messages are linked from the oldest to the last.
    MessageIndex oldest = kNoMessage;
    MessageIndex sending = kNoMessage;  ///< the next packet is of this one
    MessageIndex last = kNoMessage;
    std::uint32_t next = 0;          ///< sequence number of the next packet to be sent
    std::uint32_t end = 0;           ///< of the packet behind the last message
    std::uint32_t acknowledged = 0;  ///< all packets before are known to be there
    std::uint32_t asked = 0;         ///< the last packet that asked for an acknowledge
    std::uint32_t timeouts = 0;      ///< without progress between them
    base::Time deadline = base::Time::never();
};

}  // namespace daqloom::infiniband

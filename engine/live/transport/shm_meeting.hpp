// The connection of the units of one machine at the beginning of an epoch.
//
//     to each peer:    hello    token, epoch, unit, address
//     to each hello:   welcome  the same; with it a ring made for that unit, the doorbell and, if
//                               there is one, the arena
//
// Each unit sends hello to all others before it waits for any, so that no order of the units can
// cause a deadlock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/handover.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// What a unit has of another one that it has met.
struct ShmPeer {
    Handover to;            ///< its end is seen when the peer dies
    Handover from;          ///< so that the peer sees ours
    SharedMemory outgoing;  ///< ring of messages to it
    SharedMemory incoming;  ///< and from it
    Doorbell doorbell;
    SharedMemory arena;  ///< none: nobody writes there
};

struct ShmMeeting {
    const TransportConfig& config;
    std::string address;     ///< of the listener, up to 64 characters
    base::Bytes ring_bytes;  ///< of the memory of a ring
    HandoverListener& listener;
    TransportCounters& counters;
};

/// By unit, for all units of the run; none: not among `peers`, or it did not answer by then. Fails
/// if this unit cannot make what it needs.
base::expected<base::Table<UnitIndex, std::optional<ShmPeer>>> meet(
    const ShmMeeting& meeting, std::span<const Transport::Peer> peers, base::Time until);

}  // namespace daqloom::live

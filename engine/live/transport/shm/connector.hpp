// The connection of the units of one machine at the beginning of an epoch.
//
//     to each peer:    hello    token, epoch, unit, address
//     to each hello:   welcome  the same; with it a ring made for that unit, the doorbell and, if
//                               there is one, the arena
//
// Each unit sends hello to all others before it waits for an answer, so that no order of the units
// can cause a deadlock.
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

/// The resources of a connected unit.
struct ShmPeer {
    Handover to;            ///< ends when the peer dies
    Handover from;          ///< through which the peer detects this unit's end
    SharedMemory outgoing;  ///< ring of messages to the peer
    SharedMemory incoming;  ///< ring of messages from the peer
    Doorbell doorbell;
    SharedMemory arena;  ///< none: the peer receives no writes
};

struct ShmEndpoint {
    const TransportConfig& config;
    std::string address;     ///< address of the listener, up to 64 characters
    base::Bytes ring_bytes;  ///< size of a ring's memory
    HandoverListener& listener;
    TransportCounters& counters;
};

/// Connects to `peers`. Returns an entry for each unit of the run; none: the unit is not among
/// `peers`, or did not answer by `until`. Fails if this unit lacks a resource.
base::expected<base::Table<UnitIndex, std::optional<ShmPeer>>> connect_peers(
    const ShmEndpoint& endpoint, std::span<const Transport::Peer> peers, base::Time until);

}  // namespace daqloom::live

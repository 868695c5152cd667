// The configuration of a simulated InfiniBand fabric, as plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "infiniband/link_change.hpp"
#include "network/graph.hpp"
#include "network/rerouting.hpp"

namespace daqloom::infiniband {

using network::Cable;
using network::End;
using network::NodeIndex;
using network::PortNumber;
/// A virtual lane, 0 … 14.
using VirtualLane = network::Lane;
using network::ServiceLevel;

/// Bytes per block, the unit in which flow control counts buffer space.
inline constexpr base::Bytes kBlockBytes = 64;

/// Time at which the buffer space of a departing packet becomes free.
enum class CreditRelease : std::uint8_t {
    per_block,  ///< each block of 64 B as soon as it has left
    at_tail,    ///< all of it when the last byte has left
};

/// Queues at an input of a switch; each virtual lane has its own.
enum class InputQueue : std::uint8_t {
    fifo,            ///< one queue, with head-of-line blocking
    virtual_output,  ///< one queue for each output
};

/// Matching of the idle inputs of a switch with its idle outputs.
enum class CrossbarArbiter : std::uint8_t {
    round_robin,  ///< one output after the other takes its next input, and leaves none idle
    islip,        ///< all outputs grant together, then inputs accept (islip.hpp)
};

/// An entry of a table for virtual lane arbitration; weight in blocks of 64 B, 0: skipped.
struct LaneWeight {
    VirtualLane lane;
    std::uint8_t weight = 0;
};

/// The arbitration tables of every output (InfiniBand Architecture Specification, volume 1, 7.6.9).
struct LaneArbitration {
    DAQLOOM_FIELDS(
        LaneArbitration,
        (std::vector<LaneWeight>, high, "High priority: pairs of lane and weight."),
        (std::vector<LaneWeight>, low, "Low priority: pairs of lane and weight.",
         {VirtualLane(0), 64}),
        (std::uint8_t, high_limit,
         "Units of 4 KiB that high priority may send before low priority has its chance; 0: one "
         "packet, 255: without limit.",
         255))
};

/// Forwarding uses linear forwarding tables: one output port for each destination, no port groups.
struct FabricConfig : network::Graph {
    DAQLOOM_FIELDS(
        FabricConfig, (std::uint32_t, lanes, "Number of virtual lanes.", 1),
        (std::vector<VirtualLane>, service_lanes,
         "Lane of each service level, the same at all ports; 0 of those that are not listed."),
        (LaneArbitration, arbitration, "Tables of virtual lane arbitration of every output."),
        (std::int64_t, buffer_blocks,
         "Input buffer of each port and virtual lane, of switches and hosts (blocks of 64 B).",
         1024),
        (InputQueue, input_queue, "Packets of an input that may cross.",
         InputQueue::virtual_output),
        (std::uint32_t, crossbar_speedup,
         "Packets that one input may send at once, to different outputs, each at its output's "
         "rate.",
         1),
        (CrossbarArbiter, crossbar_arbiter, "Matching of free inputs and outputs of a switch.",
         CrossbarArbiter::round_robin),
        (std::uint32_t, crossbar_iterations, "Iterations of iSLIP in each matching.", 1),
        (base::Time, switch_latency,
         "Time from a flit's arrival until it can leave again; above 0.", base::nanoseconds(130)),
        (CreditRelease, credit_release, "Time at which a packet's buffer becomes free.",
         CreditRelease::at_tail),
        (base::Time, credit_update_interval,
         "Least time between two credit updates of a virtual lane."),
        (base::Bytes, credit_update_bytes, "Size of a credit update on the wire.", 8),
        (base::Time, head_of_queue_lifetime,
         "Head-of-queue lifetime (HOQLife): a packet that could leave is discarded after so long "
         "at the head of its queue in a switch; 0: no limit."),
        (std::uint64_t, seed, "Seed of bit errors.", 1),
        (std::vector<LinkChange>, changes, "Changes of links during the run."),
        (std::vector<network::Rerouting>, reroutings,
         "Changes of the forwarding tables during the run."))
};

}  // namespace daqloom::infiniband

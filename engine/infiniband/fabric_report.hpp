// What every system on a cluster reports, whatever its protocol.
#pragma once

#include <cstdint>
#include <vector>

#include "infiniband/hosts.hpp"
#include "infiniband/network.hpp"
#include "sim/histogram.hpp"

namespace daqloom::infiniband {

/// An output, at one end of a cable.
struct PortReport : OutputCounters {
    NodeIndex node;
    PortNumber port = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using Report = PortReport;
        see("node", &Report::node, "Host or switch: hosts come first.");
        see("port", &Report::port, "Number of the port of that node.");
        OutputCounters::each(see);
    }
};

/// Over the whole run.
struct FabricReport {
    std::uint64_t sim_events = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t packet_hops = 0;
    std::uint64_t pending_peak = 0;
    bool stalled = false;
    RetryCounters retries;
    sim::Histogram write_latency;
    std::vector<PortReport> ports;    ///< both ends of each cable in turn
    std::vector<LaneCounters> lanes;  ///< the virtual lanes of each port in turn
    std::uint32_t lanes_of_port = 1;

    /// Calls see(name, member, meaning) for each field but ports and lanes.
    template <class See>
    static void each(See see) {
        using Report = FabricReport;
        see("sim_events", &Report::sim_events, "Events that the simulator processed.");
        see("fingerprint", &Report::fingerprint,
            "A hash of all events that the simulator processed, in order.");
        see("packet_hops", &Report::packet_hops, "Packets sent by an output, over all outputs.");
        see("pending_peak", &Report::pending_peak, "Most events pending at a time.");
        see("stalled", &Report::stalled,
            "Whether units wait at the end for what no event will bring.");
        see("retries", &Report::retries, "Retransmissions and their causes.");
        see("write_latency", &Report::write_latency,
            "From the post of data to another node until the sender has the completion, after the "
            "warm-up.");
    }
};

}  // namespace daqloom::infiniband

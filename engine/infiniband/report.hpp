// Counts of an InfiniBand fabric.
#pragma once

#include <cstdint>
#include <vector>

#include "infiniband/network.hpp"

namespace daqloom::infiniband {

/// Counts of an output, at one end of a cable.
struct PortReport : OutputCounters {
    NodeIndex node;
    PortNumber port = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        see("node", &PortReport::node, "Host or switch: hosts come first.");
        see("port", &PortReport::port, "Number of the port of that node.");
        OutputCounters::each(see);
    }
};

/// Counts of the whole run.
struct Report {
    std::vector<PortReport> ports;    ///< both ends of each cable in turn
    std::vector<LaneCounters> lanes;  ///< the virtual lanes of each port in turn
    std::uint32_t lanes_of_port = 1;
    std::uint64_t unrouted = 0;  ///< packets for which a switch had no route
};

}  // namespace daqloom::infiniband

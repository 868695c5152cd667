// What happens to a node during a run.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "network/graph.hpp"

namespace daqloom::systems {

struct NodeChange {
    enum class What : std::uint8_t {
        /// Until `until` its processor takes nothing in, notices no completion and sends nothing;
        /// its adapter goes on: what others write to its memory arrives and is acknowledged.
        stop,
        /// The processes of its units are killed, and until `until` no other can be started there;
        /// only where the others regroup.
        kill,
        slow,  ///< from now on its processor takes `factor` times as long as usual; 1: as usual
    };

    base::Time at{};
    network::NodeIndex host;
    What what = What::stop;
    base::Time until{};
    double factor = 1;
};

}  // namespace daqloom::systems

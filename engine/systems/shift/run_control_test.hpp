// Linear shifting under a run control, for tests of unit loss.
#pragma once

#include "systems/run/run_control_test.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {

/// Linear shifting of nodes and spares under a run control with short timeouts. Spares are dummies
/// in the schedule. MFPs have 64 kB, 2.7 us on a wire.
inline ShiftSystemConfig controlled(std::uint32_t nodes = 4, std::uint32_t spares = 0) {
    ShiftSystemConfig config = system_on(star_200(nodes + spares));
    config.spare_slots.assign(nodes, NodeIndex::none());
    config.spare_slots.insert(config.spare_slots.end(), config.slots.begin() + nodes,
                              config.slots.end());
    std::fill(config.slots.begin() + nodes, config.slots.end(), NodeIndex::none());
    config.mfp_bytes.resize(nodes);
    config.barrier = ShiftBarrier::centralised;
    control(config);
    return config;
}

}  // namespace daqloom::systems

// The configuration of pull event building, as plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

struct PullSystemConfig : SystemConfig, protocol::PullRules {
    /// The host of each readout unit, and of each builder unit; one of either may share a host.
    std::vector<NodeIndex> readouts;
    std::vector<NodeIndex> builders;

    base::Bytes request_size = 100;
    base::Time readout_cost_per_message;  ///< of the host's processor, one message at a time
    base::Time builder_cost_per_message;
};

/// An error of one sentence if the units' part of the configuration cannot be simulated.
[[nodiscard]] base::expected<void> validate(const PullSystemConfig& config);

}  // namespace daqloom::systems

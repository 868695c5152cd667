// The configuration of pull event building, as plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

struct PullSystemConfig : SystemConfig {
    /// The host of each readout unit, and of each builder unit; one of either may share a host.
    std::vector<NodeIndex> readouts;
    std::vector<NodeIndex> builders;

    protocol::ArrivalsConfig arrivals;
    protocol::EventSizeConfig event_size;
    std::vector<double> share;  ///< of an event, by readout unit; empty: equal

    protocol::Assignment assignment = protocol::Assignment::round_robin;
    std::uint32_t concurrent_events = 32;
    std::uint32_t outstanding_fragments = 0;  ///< of one builder; 0: no limit
    base::Bytes request_size = 100;
    base::DelayDistribution response;
    std::vector<base::DelayDistribution> processing;  ///< one after the other
    base::Time readout_cost_per_message;  ///< of the host's processor, one message at a time
    base::Time builder_cost_per_message;
};

/// An error of one sentence if the units' part of the configuration cannot be simulated.
[[nodiscard]] base::expected<void> validate(const PullSystemConfig& config);

}  // namespace daqloom::systems

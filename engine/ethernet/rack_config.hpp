// One rack of builder units that pull events from all readout units.
//
//   readout unit 0 ──┐                                     ┌── builder 0
//   readout unit 1 ──┤ core ══ uplink(s) ══ top of rack ───┤── builder 1
//         …        ──┘                                     └──    …
//
// Racks are independent of one another, so that one rack represents the farm.
#pragma once

#include <cstdint>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/link.hpp"
#include "ethernet/network.hpp"
#include "ethernet/switch_buffer.hpp"
#include "ethernet/tcp_config.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"

namespace daqloom::ethernet {

struct RackConfig {
    std::uint32_t readouts = 1;
    std::uint32_t builders = 1;

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

    LinkConfig readout_link;
    LinkConfig uplink;
    std::uint32_t uplinks = 1;
    LinkConfig access_link;  ///< its rate_limit paces the top of rack only
    SwitchConfig core;
    SwitchConfig tor;
    TcpConfig tcp;
    LossConfig access_loss;  ///< on the way to the builders

    base::Time duration;
    base::Time warmup;
    std::uint64_t seed = 1;
    std::uint32_t occupancy_bins = 4000;
};

/// One port for each host and uplink, in this order.
inline std::uint32_t core_ports(const RackConfig& config) {
    return config.readouts + config.uplinks;
}
inline std::uint32_t tor_ports(const RackConfig& config) {
    return config.uplinks + config.builders;
}

/// An error of one sentence if the configuration cannot be simulated.
[[nodiscard]] base::expected<void> validate(const RackConfig& config);

}  // namespace daqloom::ethernet

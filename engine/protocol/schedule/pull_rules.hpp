// The rules of pull event building, which all its units share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/distribution.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"

namespace daqloom::protocol {

struct PullRules {
    ArrivalsConfig arrivals;
    EventSizeConfig event_size;
    std::vector<double> share;  ///< of an event, by readout unit; empty: equal

    Assignment assignment = Assignment::round_robin;
    std::uint32_t concurrent_events = 32;
    std::uint32_t outstanding_fragments = 0;  ///< of one builder; 0: no limit
    base::DelayDistribution response;
    std::vector<base::DelayDistribution> processing;  ///< one after the other
};

}  // namespace daqloom::protocol

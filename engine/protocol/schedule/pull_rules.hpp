// The rules of pull event building, which all its units share.
#pragma once

#include <cstdint>
#include <vector>

#include "base/distribution.hpp"
#include "base/fields.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/schedule/storage_rules.hpp"

namespace daqloom::protocol {

struct PullRules {
    static constexpr const char* name = "pull_rules";  ///< as a part of a configuration
    DAQLOOM_FIELDS(
        PullRules, (ArrivalsConfig, arrivals, "Arrival times of events."),
        (EventSizeConfig, event_size, "Sizes of events."),
        (std::vector<double>, share, "Share of an event of each readout unit; empty: equal."),
        (Assignment, assignment, "Builder unit of an event.", Assignment::round_robin),
        (std::uint32_t, concurrent_events, "Events that a builder unit collects at a time.", 32),
        (std::uint32_t, outstanding_fragments,
         "Fragments that a builder unit may have requested and not received; 0: no limit."),
        (base::DelayDistribution, response, "Delay of a readout unit's answer."),
        (std::vector<base::DelayDistribution>, processing,
         "Delays of the processing of an event, one after the other."),
        (StorageRules, storage, "Events that go to storage units after their processing."))
};

}  // namespace daqloom::protocol

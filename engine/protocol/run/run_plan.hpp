// The plan of a run: the input of its run control before it starts.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "protocol/run/accounts/tally.hpp"
#include "protocol/run/run_slots.hpp"

namespace daqloom::protocol {

struct RunPlan {
    std::uint32_t units = 1;  ///< number of units, numbered from 0
    base::Time heartbeat = base::milliseconds(200);
    /// Limit on a unit's silence or lack of progress.
    base::Time fault_timeout = base::seconds(1);
    /// Limit on the time to prepare or reset.
    base::Time order_timeout = base::seconds(10);
    /// Limit on the time to join, and then to configure: a unit imports many modules and fills its
    /// buffers.
    base::Time launch_timeout = base::seconds(60);
    /// Limit on the time in which a unit that still reports finishes its files at the end.
    base::Time finish_timeout = base::Time::zero();
    bool stops_when_unwritable = false;  ///< the run stops when a unit cannot write what it builds
    bool restart = true;                 ///< lost units are brought back without an operator
    bool launches = true;                ///< the run control starts and ends each process itself
    /// Smallest number of MEPs that a lease allows beyond the last one known to be answered; added
    /// to what the run builds in Leases::leased_timeouts.
    std::uint64_t leased_meps = 1024;
    /// Slots of readout units, builder units and spares; a spare is idle until a role of a lost
    /// unit moves to it. Without any slots, all units read out and build.
    RunSlots slots = {};
    /// Roles of a lost unit move to two spares, one each.
    bool moves_apart = false;
    /// Whether a MEP's number determines its builder unit in the epoch.
    bool takes_turns = true;
    /// Fewest members that can build events; one of them has to read out and one to build.
    std::uint32_t fewest_members = 1;
    /// Whether the only readout unit may have a builder unit beside it. Where copies take no time,
    /// this pair would build any number of events in no time.
    bool builds_alone = true;
    Gauges gauges = {};
};

}  // namespace daqloom::protocol

// The plan of a run: the input of its run control before it starts.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/run/run_slots.hpp"

namespace daqloom::protocol {

struct RunPlan {
    DAQLOOM_FIELDS(
        RunPlan, (std::uint32_t, units, "Number of units; they are numbered from 0.", 1),
        (base::Time, heartbeat, "Time from report to report.", base::milliseconds(200)),
        (base::Time, fault_timeout, "Longest time of a unit without a report, or without progress.",
         base::seconds(1)),
        (base::Time, order_timeout, "Time limit of a unit for the orders prepare and reset.",
         base::seconds(10)),
        (base::Time, launch_timeout,
         "Time limit of a unit to join, and again to configure, for imports and for buffers.",
         base::seconds(60)),
        (base::Time, finish_timeout,
         "Time limit of a unit that reports to finish its files at the end."),
        (bool, stops_when_unwritable,
         "Whether the run stops when a unit cannot write what it builds."),
        (bool, restart, "Whether lost units are brought back without an operator.", true),
        (bool, launches, "Whether the run control starts and ends each process itself.", true),
        (std::uint64_t, leased_meps,
         "Smallest number of MEPs that a lease allows beyond the last one known to be answered; "
         "added to what the run builds in a few timeouts.",
         1024),
        (RunSlots, slots,
         "Units that read out, units that build, and spares, which are idle until a role of a lost "
         "unit moves to them; without any, all units read out and build."),
        (bool, moves_apart,
         "Whether the readout unit and the builder unit of a lost unit move to a spare each."),
        (bool, takes_turns, "Whether a MEP's number determines its builder unit in the epoch.",
         true),
        (base::Time, control_grace,
         "Time for which units go on building without a run control; 0: they end with it."),
        (std::uint32_t, fewest_members,
         "Fewest members that can build events; one of them has to read out and one to build.", 1))
    /// Whether the only readout unit may share its unit with a builder unit. In a simulation, where
    /// copies take no time, this pair would build any number of events in no time.
    bool builds_alone = true;
};

}  // namespace daqloom::protocol

// The rules of linear shifting, which all its units share: when phases change, and the barrier.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

/// The condition for the next phase.
enum class PhaseChange {
    by_count,  ///< when a number of MEPs has been written, and, with a barrier, by the other units
               ///< as well
    by_time,   ///< at the end of a time window, whose last part lets writes end
};

/// The synchronisation of the units, if phases change by count.
enum class ShiftBarrier {
    none,           ///< unsynchronised
    centralised,    ///< as in BarrierKind; participants are the readout units, master is unit 0
    tournament,     ///< as in BarrierKind
    dissemination,  ///< as in BarrierKind
    external,       ///< outside of the units: an ideal one, without messages
    neighbour,      ///< as in BarrierKind: each waits for the next one of its group, in a ring;
                    ///< paced with one writer, only the last for the first (see ShiftUnit)
    network,        ///< outside of the units: adapters and switches of the network combine the
                    ///< arrivals and return the release
};

/// Whether the unit's world, and not the units, combines the entries into a barrier.
constexpr bool is_outside(ShiftBarrier barrier) {
    return barrier == ShiftBarrier::external || barrier == ShiftBarrier::network;
}

/// The part that decides when a readout unit writes.
enum class Pace {
    schedule,  ///< it writes when its phase has begun
    builder,   ///< it writes in its phase when the builder unit permits it, a few at a time
};

/// The order in which a builder unit answers readout units that are ready.
enum class WriteOrder {
    arrival,   ///< order of their requests
    schedule,  ///< order of their phases, among those that are ready
};

struct ShiftRules {
    static constexpr const char* name = "shift_rules";  ///< as a part of a configuration
    DAQLOOM_FIELDS(
        ShiftRules, (PhaseChange, change, "Condition for the next phase.", PhaseChange::by_count),
        (std::uint32_t, meps_per_phase, "By count: MEPs of a phase.", 1),
        (ShiftBarrier, barrier, "By count: synchronisation.", ShiftBarrier::tournament),
        (std::uint32_t, phases_per_barrier, "By count: phases between barriers.", 1),
        (std::uint32_t, phases_under_way,
         "By count: phases whose writes may be under way at once; between barriers only.", 1),
        (std::vector<std::uint32_t>, barrier_groups,
         "Group of each readout unit: a barrier waits for those of its own group only; empty: for "
         "all."),
        (std::uint32_t, barrier_slack,
         "Barriers that a unit has reached and that may be incomplete while it continues: units "
         "that wait for each other are at most this number of barriers apart."),
        (bool, leaves_step,
         "A unit waits at fewer barriers where that makes rounds shorter (see StepKeeper)."),
        (Pace, pace, "Side that decides when a readout unit writes.", Pace::schedule),
        (std::uint32_t, writers,
         "Readout units that write at a time to a builder unit that sets the pace.", 1),
        (WriteOrder, write_order, "Order of the writes to a builder unit that sets the pace.",
         WriteOrder::arrival),
        (bool, keeps_dummies,
         "By count: a dummy's phase lasts as long as the last one in which the unit sent, or the "
         "last write for which it had to ask, so that it stays in step; else it is over at once, "
         "and so it is before a barrier without slack, which keeps units in step.",
         true),
        (base::Time, window, "By time: length of a phase, the grace period included.",
         base::milliseconds(1)),
        (base::Time, grace, "By time: period at the end of a phase without a write under way."))
};

}  // namespace daqloom::protocol

// The rules of linear shifting, which all its units share: when phases change, and the barrier.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace daqloom::protocol {

/// The condition for the next phase.
enum class PhaseChange {
    by_count,  ///< when so many MEPs have been written, and the others have come as far if there is
               ///< a barrier
    by_time,   ///< at the end of a time window, the last part of which is for writes to end
};

/// The synchronisation of the units, if phases change by count.
enum class ShiftBarrier {
    none,           ///< unsynchronised
    centralised,    ///< as in BarrierKind; participants are the readout units, master is unit 0
    tournament,     ///<
    dissemination,  ///<
    external,       ///< outside of the units: in the network's hardware, or an ideal one
    neighbour,      ///< as in BarrierKind: each waits for the next one of its group, in a ring;
                    ///< paced with one writer, only the last for the first (see ShiftUnit)
};

/// Who says when a readout unit writes.
enum class Pace {
    schedule,  ///< it writes when its phase has begun
    builder,   ///< then it asks the builder unit, which lets a few write at a time
};

/// In which a builder unit answers readout units that are ready.
enum class WriteOrder {
    arrival,   ///< of what they ask
    schedule,  ///< of their phases, among those that are ready
};

struct ShiftRules {
    PhaseChange change = PhaseChange::by_count;
    std::uint32_t meps_per_phase = 1;                 ///< by count
    ShiftBarrier barrier = ShiftBarrier::tournament;  ///< by count
    std::uint32_t phases_per_barrier = 1;             ///< by count
    /// By count: phases whose writes may be under way at once; between barriers only.
    std::uint32_t phases_under_way = 1;
    /// Of each readout unit: a barrier waits for those of its own group only; empty: for all.
    std::vector<std::uint32_t> barrier_groups = {};
    /// A unit goes on while so many barriers that it has come to are not over: those who wait for
    /// each other are at most so many barriers apart.
    std::uint32_t barrier_slack = 0;
    /// A unit waits at fewer barriers where that makes rounds shorter (see StepKeeper).
    bool leaves_step = false;
    Pace pace = Pace::schedule;
    std::uint32_t writers = 1;  ///< at a time, of a builder unit that sets the pace
    WriteOrder write_order = WriteOrder::arrival;
    /// By count: a dummy's phase lasts as long as the last one in which the unit sent, or the last
    /// write for which it had to ask, so that it stays in step; else it is over at once, and so it
    /// is before a barrier without slack, which keeps units in step.
    bool keeps_dummies = true;
    base::Time window = base::milliseconds(1);  ///< by time: of a phase, the grace period included
    base::Time grace = base::Time::zero();      ///< by time: at the end, no write is under way
};

}  // namespace daqloom::protocol

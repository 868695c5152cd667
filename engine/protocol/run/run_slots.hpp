// The slots of the schedule of a run, and who is in them in an epoch.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

using Members = std::set<UnitIndex>;

/// When the run begins. Lists may be shorter than others: the rest is none.
struct RunSlots {
    std::vector<UnitIndex> readouts = {};  ///< the unit whose readout unit is in each slot, or none
    std::vector<UnitIndex> builders = {};  ///< the same of builder units
    /// The spare in each slot, or none. A slot behind those of the others is left out until
    /// somebody is in it.
    std::vector<UnitIndex> spares = {};
    /// Another slot with nobody in it stays, as a dummy; else it is left out, unless it is one
    /// always.
    bool keeps_lost = true;
    /// The number in the run of each unit's readout unit; empty: in the order of the slots.
    base::Table<UnitIndex, ReadoutIndex> numbers = {};

    /// Units 0, 1, … with both of them.
    static RunSlots folded(std::size_t units);
    [[nodiscard]] std::size_t size() const;
    /// One more than the largest number of a unit.
    [[nodiscard]] std::size_t units() const;
    /// The number in the run of each unit's readout unit, or none.
    [[nodiscard]] base::Table<UnitIndex, ReadoutIndex> readout_numbers() const;
    /// The same units in other slots, spares behind them; readout units keep their numbers.
    [[nodiscard]] RunSlots rearranged(std::vector<UnitIndex> readouts,
                                      std::vector<UnitIndex> builders) const;
};

/// A unit whose readout unit and builder unit are not where they were when the run began.
struct Moved {
    DAQLOOM_FIELDS(Moved, (UnitIndex, unit, "Whose readout unit and builder unit."),
                   (UnitIndex, readout, "Who holds its readout unit; none: nobody."),
                   (UnitIndex, builder, "Who holds its builder unit; none: nobody."))

    friend bool operator==(const Moved&, const Moved&) = default;
};

/// A slot in an epoch.
struct EpochSlot {
    UnitIndex readout = UnitIndex::none();       ///< who has a readout unit here
    UnitIndex builder = UnitIndex::none();       ///< who has a builder unit here
    ReadoutIndex in_run = ReadoutIndex::none();  ///< the number of the readout unit in the run
    /// Its number in the epoch: in the order of those in the run, whatever its slot is, so that the
    /// data of an event are in the same order in all epochs.
    ReadoutIndex in_epoch = ReadoutIndex::none();

    [[nodiscard]] bool is_dummy() const {
        return readout == UnitIndex::none() && builder == UnitIndex::none();
    }
};

/// The slots of an epoch. What has moved is in the slot of who holds it, if nobody else has that
/// there: routes that lead to each slot without conflicts still do.
std::vector<EpochSlot> slots_of(const RunSlots& run, std::span<const UnitIndex> members,
                                std::span<const Moved> moved);

}  // namespace daqloom::protocol

// The slots of a run's schedule, and the units that they contain in an epoch.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

using Members = std::set<UnitIndex>;

/// Units in each slot of the schedule when the run begins. A slot beyond the end of a list has no
/// unit of the kind that the list contains.
struct RunSlots {
    DAQLOOM_FIELDS(
        RunSlots,
        (std::vector<UnitIndex>, readouts,
         "Unit whose readout unit is in each slot at the begin of the run, or none."),
        (std::vector<UnitIndex>, builders,
         "Unit whose builder unit is in each slot at the begin of the run, or none."),
        (std::vector<UnitIndex>, spares,
         "Spare in each slot, or none. A slot beyond all others is left out while it has no unit."),
        (bool, keeps_lost,
         "Whether other slots stay as dummies when empty, instead of being left out; slots that "
         "are dummies from the start always stay.",
         true))
    /// Number of each unit's readout unit in the run; if empty, the slots' order numbers them.
    base::Table<UnitIndex, ReadoutIndex> numbers = {};

    /// Slots of units 0, 1, …, each with both roles.
    static RunSlots folded(std::size_t units);
    [[nodiscard]] std::size_t size() const;
    /// Whether the units are in other slots than in those of the plan.
    [[nodiscard]] bool is_rearranged() const { return !numbers.empty(); }
    /// One more than the largest number of a unit.
    [[nodiscard]] std::size_t units() const;
    /// Number of each unit's readout unit in the run, or none.
    [[nodiscard]] base::Table<UnitIndex, ReadoutIndex> readout_numbers() const;
    /// A copy with the units in other slots, spares behind them; readout units keep their numbers.
    /// Fails for other units than those of these slots.
    [[nodiscard]] base::expected<RunSlots> rearranged(std::vector<UnitIndex> readouts,
                                                      std::vector<UnitIndex> builders) const;
};

/// A unit and the holders of its roles, of which one differs from the start of the run.
struct RoleHolders {
    DAQLOOM_FIELDS(RoleHolders, (UnitIndex, unit, "Unit that had the roles at the start."),
                   (UnitIndex, readout, "Unit that holds the readout unit now, or none."),
                   (UnitIndex, builder, "Unit that holds the builder unit now, or none."))

    friend bool operator==(const RoleHolders&, const RoleHolders&) = default;
};

/// A slot in an epoch.
struct EpochSlot {
    UnitIndex readout = UnitIndex::none();       ///< the unit that holds a readout unit here
    UnitIndex builder = UnitIndex::none();       ///< the unit that holds a builder unit here
    ReadoutIndex in_run = ReadoutIndex::none();  ///< the number of the readout unit in the run
    /// The number of the readout unit in the epoch. It follows the order of the numbers in the run,
    /// not of the slots, so that the data of an event have the same order in all epochs.
    ReadoutIndex in_epoch = ReadoutIndex::none();

    [[nodiscard]] bool is_dummy() const {
        return readout == UnitIndex::none() && builder == UnitIndex::none();
    }
};

/// The slots of an epoch. A moved role takes the slot of its holder, unless this slot already has
/// such a role, so that routes between slots remain free of conflicts.
std::vector<EpochSlot> slots_of(const RunSlots& run, std::span<const UnitIndex> members,
                                std::span<const RoleHolders> moved);

}  // namespace daqloom::protocol

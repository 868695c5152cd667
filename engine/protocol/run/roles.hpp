// Which units hold the readout units and the builder units of a run.
//
// A unit holds its own, until it is lost and a spare is left: then its readout unit and its builder
// unit move to spares and stay there. The lost unit, when it comes back, is a spare itself.
#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/run_plan.hpp"

namespace daqloom::protocol {

class Roles {
  public:
    /// Each unit holds its own.
    explicit Roles(const RunPlan& plan);

    /// Those that follow when just these units are available. A unit that holds nothing of another
    /// takes back what is its own and held by nobody; what else is held by nobody moves to units
    /// that hold nothing, readout units first, as far as there are any. When these could not build
    /// events, they begin anew: all that there are hold their own.
    [[nodiscard]] Roles among(const Members& available) const;

    /// The same, with the units in other slots.
    [[nodiscard]] Roles in(const RunSlots& slots) const {
        Roles other = *this;
        other.slots_ = slots;
        return other;
    }
    [[nodiscard]] const RunSlots& slots() const { return slots_; }

    /// Units that hold something.
    [[nodiscard]] Members holders() const;
    /// Those of them with a readout unit.
    [[nodiscard]] Members readouts() const;
    /// Those of them with a builder unit, in the order of their turns.
    [[nodiscard]] std::vector<UnitIndex> builders() const;
    /// In ascending order; of units that are lost only where something has moved.
    [[nodiscard]] std::vector<Moved> moved() const;
    /// Whether it had a readout or a builder unit when the run began.
    [[nodiscard]] bool is_home(UnitIndex unit) const {
        return readouts_.exists[unit] || builders_.exists[unit];
    }
    /// Whether everything is held.
    [[nodiscard]] bool is_complete() const;
    /// Whether the holders can build events.
    [[nodiscard]] bool is_viable() const;

  private:
    /// Who holds the readout unit, or the builder unit, of each unit.
    struct Held {
        base::Table<UnitIndex, bool> exists;
        base::Table<UnitIndex, UnitIndex> by;

        [[nodiscard]] bool is_lacking(UnitIndex unit) const {
            return exists[unit] && by[unit] == UnitIndex::none();
        }
        [[nodiscard]] bool has_of_another(UnitIndex unit) const;
    };

    /// Gives what is held by nobody to those that are available, as among() says.
    void fill(const Members& available);

    std::uint32_t fewest_;
    bool builds_alone_;
    bool is_together_;  ///< what one unit has lost moves to one unit
    RunSlots slots_;
    Held readouts_;
    Held builders_;
};

}  // namespace daqloom::protocol

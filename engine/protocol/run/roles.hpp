// Which units hold the readout units and the builder units of a run.
//
// A unit holds its own roles until it is lost and a spare is left: then its readout unit and its
// builder unit move to spares and stay there. The lost unit, when it comes back, is a spare itself.
#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/run_plan.hpp"

namespace daqloom::protocol {

class Roles {
  public:
    /// Initial roles: each unit holds its own.
    explicit Roles(const RunPlan& plan);

    /// The roles that follow when just these units are available. A unit that holds no role of
    /// another takes back its own roles that are unheld. Other unheld roles move to units without
    /// roles, readout units first, while such units are left. If the holders could not build
    /// events, the assignment begins anew: all available units hold their own.
    [[nodiscard]] Roles among(const Members& available) const;

    /// A copy of the roles, with the units in other slots.
    [[nodiscard]] Roles in(const RunSlots& slots) const {
        Roles other = *this;
        other.slots_ = slots;
        return other;
    }
    [[nodiscard]] const RunSlots& slots() const { return slots_; }

    /// Units with a role.
    [[nodiscard]] Members holders() const;
    /// Holders with a readout unit.
    [[nodiscard]] Members readouts() const;
    /// Holders with a builder unit, in the order of their turns.
    [[nodiscard]] std::vector<UnitIndex> builders() const;
    /// Moved units in ascending order; lost units only where a role of theirs has moved.
    [[nodiscard]] std::vector<Moved> moved() const;
    /// Whether the unit had a readout or a builder unit when the run began.
    [[nodiscard]] bool is_home(UnitIndex unit) const {
        return readouts_.exists[unit] || builders_.exists[unit];
    }
    /// Whether all roles are held.
    [[nodiscard]] bool is_complete() const;
    /// Whether the holders can build events.
    [[nodiscard]] bool is_viable() const;

  private:
    /// Holders of one kind of role, the readout units or the builder units. `exists`: whether a
    /// unit had this role when the run began. `by`: the unit that has this role now; none if no
    /// unit has.
    struct Held {
        base::Table<UnitIndex, bool> exists;
        base::Table<UnitIndex, UnitIndex> by;

        [[nodiscard]] bool is_lacking(UnitIndex unit) const {
            return exists[unit] && by[unit] == UnitIndex::none();
        }
        [[nodiscard]] bool has_of_another(UnitIndex unit) const;
    };

    /// Gives unheld roles to available units; see among().
    void fill(const Members& available);

    std::uint32_t fewest_;
    bool builds_alone_;
    bool is_together_;  ///< both roles of a lost unit move to the same unit
    RunSlots slots_;
    Held readouts_;
    Held builders_;
};

}  // namespace daqloom::protocol

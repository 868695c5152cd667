// Assignment of the readout units and builder units of a run (roles) to units.
//
// A unit holds its own roles. When it is lost and a spare is left, its readout unit and its builder
// unit move to spares and stay there. When the lost unit comes back, it is a spare.
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

    /// The roles if exactly these units are available. A unit that holds no role of another unit
    /// takes back its own roles that no unit holds. Other roles without a holder move to units
    /// without roles, readout units first, while such units are left. If the holders could not
    /// build events, the assignment begins anew: all available units hold their own roles.
    [[nodiscard]] Roles among(const Members& available) const;

    /// A copy of the roles, with the units in other slots.
    [[nodiscard]] Roles in(const RunSlots& slots) const {
        Roles other = *this;
        other.slots_ = slots;
        return other;
    }
    [[nodiscard]] const RunSlots& slots() const { return slots_; }

    /// A copy of the roles in which the readout units of these units are left out.
    [[nodiscard]] Roles without(const Members& sources) const;

    /// Units with a role.
    [[nodiscard]] Members holders() const;
    /// Holders with a readout unit.
    [[nodiscard]] Members readouts() const;
    /// Holders with a builder unit, in the order of their turns.
    [[nodiscard]] std::vector<UnitIndex> builders() const;
    /// Units with moved roles, ascending; a lost unit only if another unit holds one of its roles.
    [[nodiscard]] std::vector<RoleHolders> moved() const;
    /// Whether the unit had a readout or a builder unit when the run began.
    [[nodiscard]] bool is_home(UnitIndex unit) const {
        return readouts_.exists[unit] || builders_.exists[unit];
    }
    /// Whether all roles are held.
    [[nodiscard]] bool is_complete() const;
    /// Whether the holders can build events.
    [[nodiscard]] bool is_viable() const;

    // ---- holder of each unit's role, or none, for a snapshot of the run
    [[nodiscard]] std::vector<UnitIndex> readouts_by() const { return all(readouts_.by); }
    [[nodiscard]] std::vector<UnitIndex> builders_by() const { return all(builders_.by); }
    /// Sets the holders. Precondition: a holder for each unit of the plan.
    void resume(const std::vector<UnitIndex>& readouts, const std::vector<UnitIndex>& builders);

  private:
    /// Holders of one kind of role (readout units or builder units). `exists`: whether a unit had
    /// this role when the run began. `by`: the unit that holds this role now, or none.
    struct Role {
        base::Table<UnitIndex, bool> exists;
        base::Table<UnitIndex, UnitIndex> by;
        Members excluded = {};  ///< units whose role no unit may hold

        [[nodiscard]] bool is_lacking(UnitIndex unit) const {
            return exists[unit] && by[unit] == UnitIndex::none() && !excluded.contains(unit);
        }
        [[nodiscard]] bool has_of_another(UnitIndex unit) const;
    };

    static std::vector<UnitIndex> all(const base::Table<UnitIndex, UnitIndex>& by) {
        return {by.begin(), by.end()};
    }
    /// Gives unheld roles to available units; see among().
    void fill(const Members& available);

    std::uint32_t fewest_;
    bool builds_alone_;
    bool is_together_;  ///< both roles of a lost unit move to the same unit
    RunSlots slots_;
    Role readouts_;
    Role builders_;
};

}  // namespace daqloom::protocol

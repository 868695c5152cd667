// The members of an epoch, and the numbers of their readout and builder units in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/run_slots.hpp"
#include "protocol/schedule/linear_shift.hpp"

namespace daqloom::live {

/// An epoch numbers the units of its members, and the run all units, without gaps and in the order
/// of the slots in the run. The builder units of an epoch are numbered in the order of its slots,
/// which is the order of their turns.
struct Members {
    base::Table<protocol::ReadoutIndex, UnitIndex> readouts;  ///< members with a readout unit
    base::Table<protocol::BuilderIndex, UnitIndex> builders;
    /// The unit's readout unit in the epoch; none: the unit has none, or is no member.
    base::Table<UnitIndex, protocol::ReadoutIndex> readout_of;
    base::Table<UnitIndex, protocol::BuilderIndex> builder_of;
    /// The number in the run of each readout unit of the epoch.
    base::Table<protocol::ReadoutIndex, protocol::ReadoutIndex> readout_in_run;
    std::uint32_t readouts_in_run = 0;
    protocol::LinearShift shift;

    /// The number in the run of the readout unit that this unit has in the epoch, or none.
    [[nodiscard]] protocol::ReadoutIndex reads_out(UnitIndex unit) const {
        const auto here = readout_of[unit];
        return here == protocol::ReadoutIndex::none() ? here : readout_in_run[here];
    }
    /// The members in ascending order.
    [[nodiscard]] std::vector<UnitIndex> all() const {
        std::vector<UnitIndex> found;
        for (const UnitIndex unit : readout_of.indices()) {
            if (readout_of[unit] != protocol::ReadoutIndex::none() || builds(unit)) {
                found.push_back(unit);
            }
        }
        return found;
    }
    [[nodiscard]] bool builds(UnitIndex unit) const {
        return builder_of[unit] != protocol::BuilderIndex::none();
    }

    /// Fails if there is no readout unit or no builder unit, or if `moved` is inconsistent.
    static base::expected<Members> of(const protocol::RunSlots& run,
                                      std::span<const UnitIndex> members,
                                      std::span<const protocol::RoleHolders> moved = {});
};

}  // namespace daqloom::live

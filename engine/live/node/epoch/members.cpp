#include "live/node/epoch/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace daqloom::live {

namespace {

using protocol::LinearShift;
using protocol::RoleHolders;
using protocol::RunSlots;

/// Checks `moved`: each holder is a unit and a member, and holds one role of each kind at most.
base::expected<void> check(const RunSlots& slots, std::span<const UnitIndex> members,
                           std::span<const RoleHolders> moved) {
    const auto numbers = slots.readout_numbers();
    std::set<UnitIndex> units;
    std::set<UnitIndex> readouts;
    std::set<UnitIndex> builders;
    const auto holds = [&](UnitIndex holder, std::set<UnitIndex>& those) {
        return holder == UnitIndex::none() ||
               (numbers.contains(holder) && those.insert(holder).second &&
                std::ranges::find(members, holder) != members.end());
    };
    for (const RoleHolders& each : moved) {
        const bool reads =
            numbers.contains(each.unit) && numbers[each.unit] != protocol::ReadoutIndex::none();
        const bool builds = std::ranges::find(slots.builders, each.unit) != slots.builders.end();
        DAQLOOM_REFUSE_IF(!numbers.contains(each.unit) || !units.insert(each.unit).second ||
                              (!reads && each.readout != UnitIndex::none()) ||
                              (!builds && each.builder != UnitIndex::none()) ||
                              !holds(each.readout, readouts) || !holds(each.builder, builders),
                          "the readout and builder unit of unit {} have moved inconsistently: "
                          "each holder must be a member, with at most one of each kind",
                          each.unit.value());
    }
    return {};
}

}  // namespace

base::expected<Members> Members::of(const RunSlots& run, std::span<const UnitIndex> members,
                                    std::span<const RoleHolders> moved) {
    DAQLOOM_REFUSE_IF(run.readouts.size() != run.builders.size(),
                      "{} slots of readout and {} of builder units; give as many",
                      run.readouts.size(), run.builders.size());
    DAQLOOM_CHECK(check(run, members, moved));
    const std::vector<protocol::EpochSlot> slots = slots_of(run, members, moved);
    base::Table<protocol::SlotIndex, protocol::ReadoutIndex> readout_in;
    base::Table<protocol::SlotIndex, protocol::BuilderIndex> builder_in;
    protocol::BuilderIndex builders;
    for (const protocol::EpochSlot& slot : slots) {
        readout_in.push_back(slot.in_epoch);
        builder_in.push_back(slot.builder != UnitIndex::none() ? builders++
                                                               : protocol::BuilderIndex::none());
    }
    const std::size_t readouts = slots.size() - static_cast<std::size_t>(std::ranges::count(
                                                    readout_in, protocol::ReadoutIndex::none()));
    DAQLOOM_REFUSE_IF(
        readouts == 0 || builders == protocol::BuilderIndex(),
        "an epoch without readout or builder units; expected one member of each at least");
    DAQLOOM_TRY(shift, LinearShift::make(std::move(readout_in), std::move(builder_in)));
    Members found{.readouts = {},
                  .builders = {},
                  .readout_of = base::Table<UnitIndex, protocol::ReadoutIndex>(
                      run.units(), protocol::ReadoutIndex::none()),
                  .builder_of = base::Table<UnitIndex, protocol::BuilderIndex>(
                      run.units(), protocol::BuilderIndex::none()),
                  .readout_in_run = {},
                  .readouts_in_run = units_in(run.readouts),
                  .shift = std::move(shift)};
    found.readouts.resize(readouts);
    found.readout_in_run.resize(readouts);
    for (const protocol::EpochSlot& slot : slots) {
        if (slot.readout != UnitIndex::none()) {
            found.readouts[slot.in_epoch] = slot.readout;
            found.readout_of[slot.readout] = slot.in_epoch;
            found.readout_in_run[slot.in_epoch] = slot.in_run;
        }
        if (slot.builder != UnitIndex::none()) {
            found.builder_of[slot.builder] = found.builders.push_back(slot.builder);
        }
    }
    return found;
}

}  // namespace daqloom::live

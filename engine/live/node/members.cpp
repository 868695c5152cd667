#include "live/node/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace daqloom::live {

namespace {

using protocol::LinearShift;

/// The readout units, or the builder units.
template <class Role>
struct Roles {
    base::Table<Role, UnitIndex> units;
    base::Table<UnitIndex, Role> number_of;
    base::Table<Role, Role> in_run;
    std::uint32_t count_in_run = 0;
};

bool takes_part(UnitIndex unit, std::span<const UnitIndex> members) {
    return unit != UnitIndex::none() && std::ranges::find(members, unit) != members.end();
}

template <class Role>
Roles<Role> roles_of(const std::vector<UnitIndex>& slots, std::span<const UnitIndex> members) {
    Roles<Role> roles;
    for (const UnitIndex unit : slots) {
        if (unit == UnitIndex::none()) {
            continue;
        }
        roles.number_of.resize(std::max<std::size_t>(roles.number_of.size(), unit.value() + 1),
                               Role::none());
        if (takes_part(unit, members)) {
            roles.number_of[unit] = roles.units.push_back(unit);
            roles.in_run.push_back(Role(roles.count_in_run));
        }
        ++roles.count_in_run;
    }
    return roles;
}

/// A slot without a unit in the whole run stays a dummy.
std::vector<LinearShift::Member> slots_of(const NodeConfig& config,
                                          std::span<const UnitIndex> members) {
    std::vector<LinearShift::Member> slots;
    for (std::size_t slot = 0; slot < config.readout_in_slot.size(); ++slot) {
        const UnitIndex reads = config.readout_in_slot[slot];
        const UnitIndex builds = config.builder_in_slot[slot];
        const LinearShift::Member here{takes_part(reads, members), takes_part(builds, members)};
        const bool never_had_one = reads == UnitIndex::none() && builds == UnitIndex::none();
        if (config.keeps_lost_slots || never_had_one || here.has_readout || here.has_builder) {
            slots.push_back(here);
        }
    }
    return slots;
}

}  // namespace

base::expected<Members> Members::of(const NodeConfig& config, std::span<const UnitIndex> members) {
    if (config.readout_in_slot.size() != config.builder_in_slot.size()) {
        return base::failure(
            fmt::format("{} slots of readout and {} of builder units; give as many",
                        config.readout_in_slot.size(), config.builder_in_slot.size()));
    }
    auto readouts = roles_of<protocol::ReadoutIndex>(config.readout_in_slot, members);
    auto builders = roles_of<protocol::BuilderIndex>(config.builder_in_slot, members);
    if (readouts.units.empty() || builders.units.empty()) {
        return base::failure(
            "an epoch without readout or builder units; expected one member of each at least");
    }
    const std::size_t units = std::max(readouts.number_of.size(), builders.number_of.size());
    readouts.number_of.resize(units, protocol::ReadoutIndex::none());
    builders.number_of.resize(units, protocol::BuilderIndex::none());
    DAQLOOM_TRY(shift, LinearShift::of_members(slots_of(config, members), true));
    return Members{.readouts = std::move(readouts.units),
                   .builders = std::move(builders.units),
                   .readout_of = std::move(readouts.number_of),
                   .builder_of = std::move(builders.number_of),
                   .readout_in_run = std::move(readouts.in_run),
                   .readouts_in_run = readouts.count_in_run,
                   .shift = std::move(shift)};
}

}  // namespace daqloom::live

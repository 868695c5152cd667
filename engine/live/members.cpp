#include "live/members.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace daqloom::live {

namespace {

using protocol::LinearShift;

struct Roles {
    std::vector<std::uint32_t> in_slot;  ///< number in the epoch, or LinearShift::nobody
    std::vector<UnitIndex> units;
    std::vector<std::uint32_t> number_of;  ///< by unit
    std::vector<std::uint32_t> in_run;
    std::uint32_t count_in_run = 0;
};

Roles roles_of(const std::vector<UnitIndex>& slots, std::span<const UnitIndex> members) {
    Roles roles;
    for (const UnitIndex unit : slots) {
        const bool takes_part = unit != nobody && std::ranges::find(members, unit) != members.end();
        roles.in_slot.push_back(takes_part ? static_cast<std::uint32_t>(roles.units.size())
                                           : LinearShift::nobody);
        if (unit != nobody) {
            roles.number_of.resize(std::max<std::size_t>(roles.number_of.size(), unit + 1), nobody);
        }
        if (takes_part) {
            roles.number_of[unit] = roles.in_slot.back();
            roles.units.push_back(unit);
            roles.in_run.push_back(roles.count_in_run);
        }
        roles.count_in_run += unit != nobody ? 1 : 0;
    }
    return roles;
}

}  // namespace

base::expected<Members> Members::of(const NodeConfig& config, std::span<const UnitIndex> members) {
    if (config.readout_in_slot.size() != config.builder_in_slot.size()) {
        return base::failure(
            fmt::format("{} slots of readout and {} of builder units; give as many",
                        config.readout_in_slot.size(), config.builder_in_slot.size()));
    }
    Roles readouts = roles_of(config.readout_in_slot, members);
    Roles builders = roles_of(config.builder_in_slot, members);
    if (readouts.units.empty() || builders.units.empty()) {
        return base::failure(
            "an epoch without readout or builder units; expected one member of each at least");
    }
    const std::size_t units = std::max(readouts.number_of.size(), builders.number_of.size());
    readouts.number_of.resize(units, nobody);
    builders.number_of.resize(units, nobody);
    for (std::size_t slot = readouts.in_slot.size(); slot-- > 0 && !config.keeps_lost_slots;) {
        const auto at = static_cast<std::ptrdiff_t>(slot);
        const bool was_one =
            config.readout_in_slot[slot] != nobody || config.builder_in_slot[slot] != nobody;
        if (was_one && readouts.in_slot[slot] == LinearShift::nobody &&
            builders.in_slot[slot] == LinearShift::nobody) {
            readouts.in_slot.erase(readouts.in_slot.begin() + at);
            builders.in_slot.erase(builders.in_slot.begin() + at);
        }
    }
    auto shift = LinearShift::make(std::move(readouts.in_slot), std::move(builders.in_slot));
    if (!shift) {
        return tl::unexpected(shift.error());
    }
    return Members{.readouts = std::move(readouts.units),
                   .builders = std::move(builders.units),
                   .readout_of = std::move(readouts.number_of),
                   .builder_of = std::move(builders.number_of),
                   .readout_in_run = std::move(readouts.in_run),
                   .readouts_in_run = readouts.count_in_run,
                   .shift = std::move(*shift)};
}

}  // namespace daqloom::live

#include "protocol/run/roles.hpp"

#include <algorithm>

namespace daqloom::protocol {

Roles::Roles(const RunPlan& plan)
    : fewest_(plan.fewest_members),
      builds_alone_(plan.builds_alone),
      is_together_(!plan.moves_apart),
      slots_(plan.slots.size() == 0 ? RunSlots::folded(plan.units) : plan.slots) {
    const auto begin = [&](Role& role, const std::vector<UnitIndex>& in_slot) {
        role.exists.assign(plan.units, false);
        role.by.assign(plan.units, UnitIndex::none());
        for (const UnitIndex unit : in_slot) {
            if (role.exists.contains(unit)) {
                role.exists[unit] = true;
                role.by[unit] = unit;
            }
        }
    };
    begin(readouts_, slots_.readouts);
    begin(builders_, slots_.builders);
}

bool Roles::Role::has_of_another(UnitIndex unit) const {
    return std::ranges::any_of(by.indices(),
                               [&](UnitIndex other) { return other != unit && by[other] == unit; });
}

Roles Roles::among(const Members& available) const {
    Roles next = *this;
    for (Role* role : {&next.readouts_, &next.builders_}) {
        for (const UnitIndex unit : role->by.indices()) {
            UnitIndex& by = role->by[unit];
            const bool stays = available.contains(by) && !role->excluded.contains(unit);
            by = stays ? by : UnitIndex::none();
        }
    }
    next.fill(available);
    if (!next.is_viable()) {
        for (Role* role : {&next.readouts_, &next.builders_}) {
            std::ranges::fill(role->by, UnitIndex::none());
        }
        next.fill(available);
    }
    return next;
}

Roles Roles::without(const Members& sources) const {
    Roles other = *this;
    other.readouts_.excluded = sources;
    return other;
}

void Roles::fill(const Members& available) {
    Members free = available;
    for (const UnitIndex unit : holders()) {
        free.erase(unit);
    }
    const auto take = [&](Role& role, UnitIndex unit, UnitIndex by) {
        if (role.is_lacking(unit)) {
            role.by[unit] = by;
            free.erase(by);
        }
    };
    for (const UnitIndex unit : available) {
        if (!readouts_.has_of_another(unit) && !builders_.has_of_another(unit)) {
            take(readouts_, unit, unit);
            take(builders_, unit, unit);
        }
    }
    for (const UnitIndex unit : readouts_.by.indices()) {
        if (readouts_.is_lacking(unit) && !free.empty()) {
            const UnitIndex by = *free.begin();
            take(readouts_, unit, by);
            if (is_together_) {
                take(builders_, unit, by);
            }
        }
    }
    for (const UnitIndex unit : builders_.by.indices()) {
        if (!free.empty()) {
            take(builders_, unit, *free.begin());
        }
    }
}

void Roles::resume(const std::vector<UnitIndex>& readouts, const std::vector<UnitIndex>& builders) {
    std::ranges::copy(readouts, readouts_.by.begin());
    std::ranges::copy(builders, builders_.by.begin());
}

Members Roles::holders() const {
    Members found = readouts();
    for (const UnitIndex by : builders_.by) {
        if (by != UnitIndex::none()) {
            found.insert(by);
        }
    }
    return found;
}

Members Roles::readouts() const {
    Members found;
    for (const UnitIndex by : readouts_.by) {
        if (by != UnitIndex::none()) {
            found.insert(by);
        }
    }
    return found;
}

std::vector<UnitIndex> Roles::builders() const {
    const Members holders = this->holders();
    const std::vector<UnitIndex> members(holders.begin(), holders.end());
    std::vector<UnitIndex> found;
    for (const EpochSlot& slot : slots_of(slots_, members, moved())) {
        if (slot.builder != UnitIndex::none()) {
            found.push_back(slot.builder);
        }
    }
    return found;
}

std::vector<RoleHolders> Roles::moved() const {
    const Members holders = this->holders();
    std::vector<RoleHolders> found;
    for (const UnitIndex unit : readouts_.by.indices()) {
        const RoleHolders here{unit, readouts_.by[unit], builders_.by[unit]};
        const RoleHolders own{unit, readouts_.exists[unit] ? unit : UnitIndex::none(),
                              builders_.exists[unit] ? unit : UnitIndex::none()};
        const bool is_held = here.readout != UnitIndex::none() || here.builder != UnitIndex::none();
        if (here != own && (is_held || holders.contains(unit))) {
            found.push_back(here);
        }
    }
    return found;
}

bool Roles::is_complete() const {
    return std::ranges::none_of(readouts_.by.indices(), [&](UnitIndex unit) {
        return readouts_.is_lacking(unit) || builders_.is_lacking(unit);
    });
}

bool Roles::is_viable() const {
    const Members all = holders();
    const Members read = readouts();
    const std::vector<UnitIndex> build = builders();
    if (all.empty() || all.size() < fewest_ || read.empty() || build.empty()) {
        return false;
    }
    return builds_alone_ || read.size() > 1 || std::ranges::count(build, *read.begin()) == 0;
}

}  // namespace daqloom::protocol

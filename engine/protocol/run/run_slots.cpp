#include "protocol/run/run_slots.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace daqloom::protocol {

namespace {

UnitIndex in_slot(const std::vector<UnitIndex>& units, std::size_t slot) {
    return slot < units.size() ? units[slot] : UnitIndex::none();
}

/// A readout unit or a builder unit that has moved.
struct Move {
    UnitIndex unit;
    UnitIndex to;
};

/// Puts units of one kind into slots: first those that have not moved, then moved ones into a free
/// slot of their holder, then the remaining ones.
template <class Put>
void place(const RunSlots& run, const std::vector<UnitIndex>& own, std::span<const Move> moves,
           std::span<const UnitIndex> members, const Put& put) {
    std::vector<bool> is_taken(run.size(), false);
    const auto take = [&](std::size_t slot, const Move& move) {
        is_taken[slot] = true;
        put(slot, move);
    };
    for (std::size_t slot = 0; slot < own.size(); ++slot) {
        const UnitIndex unit = own[slot];
        const bool has_moved =
            std::ranges::any_of(moves, [&](const Move& move) { return move.unit == unit; });
        if (unit != UnitIndex::none() && !has_moved &&
            std::ranges::find(members, unit) != members.end()) {
            take(slot, {unit, unit});
        }
    }
    std::vector<Move> others;
    for (const Move& move : moves) {
        if (move.to == UnitIndex::none()) {
            continue;
        }
        std::size_t slot = 0;
        while (slot < run.size() && (is_taken[slot] || (in_slot(run.readouts, slot) != move.to &&
                                                        in_slot(run.builders, slot) != move.to &&
                                                        in_slot(run.spares, slot) != move.to))) {
            ++slot;
        }
        if (slot < run.size()) {
            take(slot, move);
        } else {
            others.push_back(move);
        }
    }
    for (const Move& move : others) {
        const auto home = static_cast<std::size_t>(std::ranges::find(own, move.unit) - own.begin());
        const auto free =
            static_cast<std::size_t>(std::ranges::find(is_taken, false) - is_taken.begin());
        take(home < own.size() && !is_taken[home] ? home : free, move);
    }
}

}  // namespace

RunSlots RunSlots::folded(std::size_t units) {
    RunSlots slots;
    for (std::size_t unit = 0; unit < units; ++unit) {
        slots.readouts.emplace_back(unit);
        slots.builders.emplace_back(unit);
    }
    return slots;
}

std::size_t RunSlots::size() const {
    return std::max({readouts.size(), builders.size(), spares.size()});
}

std::size_t RunSlots::units() const {
    std::size_t units = 0;
    for (const auto* slots : {&readouts, &builders, &spares}) {
        for (const UnitIndex unit : *slots) {
            units =
                unit == UnitIndex::none() ? units : std::max(units, std::size_t{unit.value()} + 1);
        }
    }
    return units;
}

base::Table<UnitIndex, ReadoutIndex> RunSlots::readout_numbers() const {
    if (!numbers.empty()) {
        return numbers;
    }
    base::Table<UnitIndex, ReadoutIndex> found(units(), ReadoutIndex::none());
    std::uint32_t count = 0;
    for (const UnitIndex unit : readouts) {
        if (unit != UnitIndex::none()) {
            found[unit] = ReadoutIndex(count++);
        }
    }
    return found;
}

base::expected<RunSlots> RunSlots::rearranged(std::vector<UnitIndex> other_readouts,
                                              std::vector<UnitIndex> other_builders) const {
    const auto are_alike = [](std::vector<UnitIndex> units, std::vector<UnitIndex> others) {
        for (auto* each : {&units, &others}) {
            std::erase(*each, UnitIndex::none());
            std::ranges::sort(*each);
        }
        return units == others;
    };
    DAQLOOM_REFUSE_IF(other_readouts.size() != other_builders.size() ||
                          !are_alike(readouts, other_readouts) ||
                          !are_alike(builders, other_builders),
                      "a schedule of {} slots of readout and {} of builder units, not as many or "
                      "with other units than the run; give each unit of the run one slot",
                      other_readouts.size(), other_builders.size());
    RunSlots other{.readouts = std::move(other_readouts),
                   .builders = std::move(other_builders),
                   .spares = {},
                   .keeps_lost = keeps_lost,
                   .numbers = readout_numbers()};
    other.spares.assign(other.size(), UnitIndex::none());
    std::ranges::copy_if(spares, std::back_inserter(other.spares),
                         [](UnitIndex unit) { return unit != UnitIndex::none(); });
    return other;
}

std::vector<EpochSlot> slots_of(const RunSlots& run, std::span<const UnitIndex> members,
                                std::span<const RoleHolders> moved) {
    std::vector<EpochSlot> slots(run.size());
    std::vector<Move> readouts;
    std::vector<Move> builders;
    for (const RoleHolders& each : moved) {
        if (each.readout != each.unit) {
            readouts.push_back({each.unit, each.readout});
        }
        if (each.builder != each.unit) {
            builders.push_back({each.unit, each.builder});
        }
    }
    const auto numbers = run.readout_numbers();
    place(run, run.readouts, readouts, members, [&](std::size_t slot, const Move& move) {
        slots[slot].readout = move.to;
        slots[slot].in_run = numbers[move.unit];
    });
    base::Table<ReadoutIndex, std::size_t> slot_of(numbers.size(), slots.size());
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        if (slots[slot].in_run != ReadoutIndex::none()) {
            slot_of[slots[slot].in_run] = slot;
        }
    }
    ReadoutIndex next;
    for (const std::size_t slot : slot_of) {
        if (slot < slots.size()) {
            slots[slot].in_epoch = next++;
        }
    }
    place(run, run.builders, builders, members,
          [&](std::size_t slot, const Move& move) { slots[slot].builder = move.to; });
    const std::size_t behind = std::max(run.readouts.size(), run.builders.size());
    std::vector<EpochSlot> left;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        const bool never_had_one = in_slot(run.readouts, slot) == UnitIndex::none() &&
                                   in_slot(run.builders, slot) == UnitIndex::none() &&
                                   in_slot(run.spares, slot) == UnitIndex::none();
        const bool stays = never_had_one || (run.keeps_lost && slot < behind);
        if (stays || !slots[slot].is_dummy()) {
            left.push_back(slots[slot]);
        }
    }
    return left;
}

}  // namespace daqloom::protocol

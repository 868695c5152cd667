#include "protocol/schedule/linear_shift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace daqloom::protocol {

namespace {

/// Slot of each unit; the units must be 0 … n − 1, each once.
template <class Unit>
base::expected<base::Table<Unit, SlotIndex>> slots_of(
    const base::Table<SlotIndex, Unit>& unit_in_slot, const char* kind) {
    const auto units = static_cast<std::size_t>(
        std::ranges::count_if(unit_in_slot, [](Unit unit) { return unit != Unit::none(); }));
    DAQLOOM_REFUSE_IF(units == 0, "linear shift: no {} unit; give at least one", kind);
    base::Table<Unit, SlotIndex> slot_of(units, SlotIndex::none());
    for (const SlotIndex slot : unit_in_slot.indices()) {
        const Unit unit = unit_in_slot[slot];
        if (unit == Unit::none()) {
            continue;
        }
        DAQLOOM_REFUSE_IF(!slot_of.contains(unit) || slot_of[unit] != SlotIndex::none(),
                          "linear shift: {} unit {} in slot {}; number the {} units 0 to {}, "
                          "each in one slot",
                          kind, unit.value(), slot.value(), units, units - 1);
        slot_of[unit] = slot;
    }
    return slot_of;
}

/// Units 0 … units − 1, then none.
template <class Unit>
base::Table<SlotIndex, Unit> from_slot_0_on(std::uint32_t units, std::uint32_t slots) {
    base::Table<SlotIndex, Unit> unit_in(slots, Unit::none());
    std::iota(unit_in.begin(), unit_in.begin() + units, Unit());
    return unit_in;
}

tl::unexpected<base::Error> wrong_number(std::uint64_t slots) {
    return base::failure(
        fmt::format("linear shift: {} slots; give 1 to {}", slots, LinearShift::most_slots));
}

}  // namespace

base::expected<LinearShift> LinearShift::folded(std::uint32_t slots,
                                                std::span<const SlotIndex> dummies) {
    if (slots < 1 || slots > most_slots) {
        return wrong_number(slots);
    }
    base::Table<SlotIndex, Member> members(slots);
    for (const SlotIndex dummy : dummies) {
        DAQLOOM_REFUSE_IF(!members.contains(dummy) || !members[dummy].has_readout,
                          "linear shift: dummy in slot {}; give slots 0 to {}, each once",
                          dummy.value(), slots - 1);
        members[dummy] = {.has_readout = false, .has_builder = false};
    }
    return of_members(std::span(members.begin(), members.end()), true);
}

base::expected<LinearShift> LinearShift::of_members(std::span<const Member> slots,
                                                    bool keeps_dummies) {
    base::Table<SlotIndex, ReadoutIndex> readout_in;
    base::Table<SlotIndex, BuilderIndex> builder_in;
    ReadoutIndex readouts;
    BuilderIndex builders;
    for (const Member member : slots) {
        if (keeps_dummies || member.has_readout || member.has_builder) {
            readout_in.push_back(member.has_readout ? readouts++ : ReadoutIndex::none());
            builder_in.push_back(member.has_builder ? builders++ : BuilderIndex::none());
        }
    }
    return make(std::move(readout_in), std::move(builder_in));
}

base::expected<LinearShift> LinearShift::unfolded(std::uint32_t readouts, std::uint32_t builders) {
    const std::uint32_t slots = std::max(readouts, builders);
    if (slots > most_slots) {
        return wrong_number(slots);
    }
    return make(from_slot_0_on<ReadoutIndex>(readouts, slots),
                from_slot_0_on<BuilderIndex>(builders, slots));
}

base::expected<LinearShift> LinearShift::make(
    base::Table<SlotIndex, ReadoutIndex> readout_in_slot,
    base::Table<SlotIndex, BuilderIndex> builder_in_slot) {
    if (readout_in_slot.size() > most_slots) {
        return wrong_number(readout_in_slot.size());
    }
    DAQLOOM_REFUSE_IF(readout_in_slot.size() != builder_in_slot.size(),
                      "linear shift: {} slots of readout and {} of builder units; give as many",
                      readout_in_slot.size(), builder_in_slot.size());
    DAQLOOM_TRY(slot_of_readout, slots_of(readout_in_slot, "readout"));
    DAQLOOM_TRY(slot_of_builder, slots_of(builder_in_slot, "builder"));
    LinearShift shift;
    shift.readout_in_ = std::move(readout_in_slot);
    shift.builder_in_ = std::move(builder_in_slot);
    shift.slot_of_readout_ = std::move(slot_of_readout);
    shift.slot_of_builder_ = std::move(slot_of_builder);
    return shift;
}

}  // namespace daqloom::protocol

// Linear shifting: the schedule of senders and receivers in each phase.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>

#include "base/expected.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// A place in the schedule, 0 … slots − 1.
using SlotIndex = base::Index<struct SlotTag>;

/// The receiver of `sender` in a phase, 0 … slots − 1: the slot `phase` places further on.
constexpr SlotIndex receiver_of(SlotIndex sender, std::uint32_t phase, std::uint32_t slots) {
    const std::uint32_t left = slots - sender.value();
    return phase < left ? sender + phase : SlotIndex(phase - left);
}

/// The sender to `receiver` in a phase.
constexpr SlotIndex sender_to(SlotIndex receiver, std::uint32_t phase, std::uint32_t slots) {
    return receiver_of(receiver, phase == 0 ? 0 : slots - phase, slots);
}

/// The schedule: as many phases as slots, in phase n slot i sends to slot (i + n) mod slots. A slot
/// holds a readout unit, a builder unit, one of each (folded), or no unit: then it is a dummy,
/// which keeps the schedule aligned with the routing at the cost of one idle phase for each unit.
///
/// Units are numbered on their own, without gaps. In a round of all phases each readout unit meets
/// each builder unit once; where both share a node that is phase 0, a local copy.
class LinearShift {
  public:
    static constexpr std::uint32_t most_slots = 65'536;

    struct Turn {
        std::uint32_t phase;
        BuilderIndex builder;
    };

    /// The units of a slot that take part; none: a dummy, or lost.
    struct Member {
        bool has_readout = true;
        bool has_builder = true;
    };

    /// The schedule of an epoch: the units that take part, each kind numbered in the order of its
    /// slots. Slots without any are dummies, or left out if these are not kept.
    static base::expected<LinearShift> of_members(std::span<const Member> slots,
                                                  bool keeps_dummies);
    /// A schedule in which each slot but the dummies is a node with both units of the same number.
    static base::expected<LinearShift> folded(std::uint32_t slots,
                                              std::span<const SlotIndex> dummies = {});
    /// Readout and builder units on different nodes, both from slot 0 on: max(readouts, builders)
    /// slots.
    static base::expected<LinearShift> unfolded(std::uint32_t readouts, std::uint32_t builders);
    /// A schedule with any order of nodes, folded in part or not: the unit in each slot, or none.
    static base::expected<LinearShift> make(base::Table<SlotIndex, ReadoutIndex> readout_in_slot,
                                            base::Table<SlotIndex, BuilderIndex> builder_in_slot);

    [[nodiscard]] std::uint32_t phases() const {
        return static_cast<std::uint32_t>(readout_in_.size());
    }
    [[nodiscard]] std::uint32_t readouts() const {
        return static_cast<std::uint32_t>(slot_of_readout_.size());
    }
    [[nodiscard]] std::uint32_t builders() const {
        return static_cast<std::uint32_t>(slot_of_builder_.size());
    }
    [[nodiscard]] SlotIndex slot_of_readout(ReadoutIndex unit) const {
        return slot_of_readout_[unit];
    }
    [[nodiscard]] SlotIndex slot_of_builder(BuilderIndex unit) const {
        return slot_of_builder_[unit];
    }

    /// The builder unit to which a readout unit sends in a phase, or none.
    [[nodiscard]] BuilderIndex builder_for(ReadoutIndex unit, std::uint32_t phase) const {
        return builder_in_[receiver_of(slot_of_readout_[unit], phase, phases())];
    }
    /// The readout unit that sends to a builder unit in a phase, or none.
    [[nodiscard]] ReadoutIndex readout_for(BuilderIndex unit, std::uint32_t phase) const {
        return readout_in_[sender_to(slot_of_builder_[unit], phase, phases())];
    }

    /// A readout unit's round: the phases in which it sends, and the receivers. Valid as long as
    /// `this`.
    [[nodiscard]] auto turns_of(ReadoutIndex unit) const {
        return std::views::iota(std::uint32_t{0}, phases()) |
               std::views::transform([this, unit](std::uint32_t phase) {
                   return Turn{phase, builder_for(unit, phase)};
               }) |
               std::views::filter([](Turn turn) { return turn.builder != BuilderIndex::none(); });
    }

  private:
    LinearShift() = default;

    base::Table<SlotIndex, ReadoutIndex> readout_in_;
    base::Table<SlotIndex, BuilderIndex> builder_in_;
    base::Table<ReadoutIndex, SlotIndex> slot_of_readout_;
    base::Table<BuilderIndex, SlotIndex> slot_of_builder_;
};

}  // namespace daqloom::protocol

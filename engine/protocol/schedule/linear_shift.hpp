// Linear shifting: the schedule of senders and receivers in each phase.
#pragma once

#include <cstdint>
#include <span>

#include "base/expected.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// A place in the schedule, 0 … slots − 1.
using SlotIndex = base::Index<struct SlotTag>;

/// The slot to which `sender` sends in a phase (0 … slots − 1), `phase` places further on.
constexpr SlotIndex receiver_of(SlotIndex sender, std::uint32_t phase, std::uint32_t slots) {
    const std::uint32_t left = slots - sender.value();
    return phase < left ? sender + phase : SlotIndex(phase - left);
}

/// The sender to `receiver` in a phase.
constexpr SlotIndex sender_to(SlotIndex receiver, std::uint32_t phase, std::uint32_t slots) {
    return receiver_of(receiver, phase == 0 ? 0 : slots - phase, slots);
}

/// The schedule: as many phases as slots; in phase n, slot i sends to slot (i + n) mod slots. A
/// slot holds a readout unit, a builder unit, or one of each (folded). A slot without units is a
/// dummy: it keeps the schedule aligned with the routing and costs each unit one idle phase.
///
/// Readout units and builder units are numbered separately, without gaps. In a round, each readout
/// unit sends to each builder unit once, to the one on its own node in phase 0 (a local copy).
class LinearShift {
  public:
    static constexpr std::uint32_t most_slots = 65'536;

    /// The units of a slot that take part. Without any, the slot is a dummy or its units are lost.
    struct Member {
        bool has_readout = true;
        bool has_builder = true;
    };

    /// The schedule of an epoch. Units of each kind are numbered in the order of their slots. Slots
    /// without units are dummies, or left out if `keeps_dummies` is false.
    static base::expected<LinearShift> of_members(std::span<const Member> slots,
                                                  bool keeps_dummies);
    /// A folded schedule: each slot except the dummies is a node, whose units share one number.
    static base::expected<LinearShift> folded(std::uint32_t slots,
                                              std::span<const SlotIndex> dummies = {});
    /// A schedule of readout and builder units on different nodes, both in the slots from 0 on:
    /// max(readouts, builders) slots.
    static base::expected<LinearShift> unfolded(std::uint32_t readouts, std::uint32_t builders);
    /// A schedule with any order of nodes, fully or partly folded: the unit in each slot, or none.
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

  private:
    LinearShift() = default;

    base::Table<SlotIndex, ReadoutIndex> readout_in_;
    base::Table<SlotIndex, BuilderIndex> builder_in_;
    base::Table<ReadoutIndex, SlotIndex> slot_of_readout_;
    base::Table<BuilderIndex, SlotIndex> slot_of_builder_;
};

}  // namespace daqloom::protocol

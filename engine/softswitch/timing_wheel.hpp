// A timing wheel: numbers (ring indices) wait for their times in slots. Put and take are O(1).
//
//   slot      0    1    2    3    4   …      one turn: as many slots as the wheel has
//             |    |    |    |    |
//             7    -    3    -    -          lists, linked through `next`
//             |
//             12
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace daqloom::softswitch {

/// A number is due when the slot that contains its time begins: early by at most the slot width. A
/// number that waits for more than a turn of the wheel is visited once in each turn.
class TimingWheel {
  public:
    /// Numbers are below `numbers`; slots are `width` wide, rounded down to a power of two in ps.
    TimingWheel(std::uint32_t numbers, base::Time width)
        : shift_(
              static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(width.ps)) - 1)),
          heads_(kSlots, kNone),
          waiting_(kSlots / 64),
          numbers_(numbers) {}

    [[nodiscard]] base::Time width() const { return {std::int64_t{1} << shift_}; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    /// Whether a time is due and needs no wait.
    [[nodiscard]] bool is_due(base::Time at, base::Time now) const {
        return slot_of(at) <= slot_of(now);
    }

    /// Inserts `number`, which is not in the wheel; `at` was not due at the last `take_due`.
    void put(std::uint32_t number, base::Time at) {
        const std::uint64_t slot = slot_of(at);
        numbers_[number].slot = slot;
        link(number, slot % kSlots);
        ++size_;
    }

    /// Calls due(number) for all numbers whose slot has begun; `due` may call `put`.
    template <class Due>
    void take_due(base::Time now, Due&& due) {
        const std::uint64_t end = slot_of(now) + 1;
        if (size_ == 0 || end <= begin_) {
            begin_ = end > begin_ ? end : begin_;
            return;
        }
        // Each slot is visited only once after a pause of more than a turn.
        const std::uint64_t first = end - begin_ > kSlots ? end - kSlots : begin_;
        begin_ = end;
        for (std::uint64_t slot = next_waiting(first, end); slot < end;
             slot = next_waiting(slot + 1, end)) {
            take_slot(slot % kSlots, end, due);
        }
    }

    /// Lower bound for the next due time; never() if no number waits.
    [[nodiscard]] base::Time next_due() const {
        if (size_ == 0) {
            return base::Time::never();
        }
        return {static_cast<std::int64_t>(next_waiting(begin_, begin_ + kSlots) << shift_)};
    }

  private:
    static constexpr std::uint32_t kNone = 0xffffffff;
    static constexpr std::uint64_t kSlots = 4096;

    [[nodiscard]] std::uint64_t slot_of(base::Time at) const {
        return static_cast<std::uint64_t>(at.ps) >> shift_;
    }

    void link(std::uint32_t number, std::uint64_t place) {
        numbers_[number].next = heads_[place];
        heads_[place] = number;
        waiting_[place / 64] |= std::uint64_t{1} << place % 64;
    }

    template <class Due>
    void take_slot(std::uint64_t place, std::uint64_t end, Due&& due) {
        std::uint32_t number = heads_[place];
        heads_[place] = kNone;
        waiting_[place / 64] &= ~(std::uint64_t{1} << place % 64);
        while (number != kNone) {
            const std::uint32_t next = numbers_[number].next;
            if (numbers_[number].slot < end) {
                --size_;
                due(number);
            } else {
                link(number, place);  // due in a later turn
            }
            number = next;
        }
    }

    /// The first slot, from `slot` on, in which a number waits; at most `end`.
    [[nodiscard]] std::uint64_t next_waiting(std::uint64_t slot, std::uint64_t end) const {
        while (slot < end) {
            const std::uint64_t place = slot % kSlots;
            const std::uint64_t word = waiting_[place / 64] >> place % 64;
            if (word != 0) {
                slot += static_cast<std::uint64_t>(std::countr_zero(word));
                return slot < end ? slot : end;
            }
            slot += 64 - place % 64;
        }
        return end;
    }

    std::uint32_t shift_;
    std::vector<std::uint32_t> heads_;    ///< list of each slot
    std::vector<std::uint64_t> waiting_;  ///< a bit for each slot in which numbers wait
    struct Number {
        std::uint64_t slot = 0;      ///< slot number of the time
        std::uint32_t next = kNone;  ///< next number in the same list
    };
    std::vector<Number> numbers_;
    std::uint64_t begin_ = 0;  ///< the first slot that has not been taken
    std::size_t size_ = 0;
};

}  // namespace daqloom::softswitch

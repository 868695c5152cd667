// A hash table from the number of an event to the slot in which a builder unit collects it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// A hash table of fixed capacity: open addressing, linear probing, at most half full, so that a
/// look-up takes a multiplication and one or two probes. Never allocates after construction.
class SlotTable {
  public:
    using Slot = std::uint32_t;
    static constexpr Slot none = std::numeric_limits<Slot>::max();

    /// `capacity`: limit on events at a time, 1 … 2^30.
    explicit SlotTable(std::uint32_t capacity)
        : entries_(std::bit_ceil(2 * std::size_t{capacity})),
          shift_(64 - std::countr_zero(entries_.size())) {}

    /// The slot of `event`, or `none`.
    [[nodiscard]] Slot find(EventId event) const { return entries_[position(event)].slot; }

    /// Preconditions: the event is not in the table, which has fewer than `capacity` events.
    void insert(EventId event, Slot slot) { entries_[position(event)] = {event, slot}; }

    /// Removes the event and moves later entries of the probe run up, so that no tombstone remains.
    /// Precondition: the event is in the table.
    void erase(EventId event) {
        std::size_t hole = position(event);
        for (std::size_t i = next(hole); entries_[i].slot != none; i = next(i)) {
            const std::size_t home_place = home(entries_[i].event);
            if (distance(home_place, i) >= distance(hole, i)) {
                entries_[hole] = entries_[i];
                hole = i;
            }
        }
        entries_[hole].slot = none;
    }

  private:
    struct Entry {
        EventId event{};
        Slot slot = none;
    };

    /// Index of the event, or of its future entry.
    [[nodiscard]] std::size_t position(EventId event) const {
        std::size_t i = home(event);
        while (entries_[i].slot != none && entries_[i].event != event) {
            i = next(i);
        }
        return i;
    }

    /// Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4).
    [[nodiscard]] std::size_t home(EventId event) const {
        return (static_cast<std::uint64_t>(event) * 0x9e37'79b9'7f4a'7c15U) >> shift_;
    }
    [[nodiscard]] std::size_t next(std::size_t i) const { return (i + 1) & (entries_.size() - 1); }
    [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const {
        return (to - from) & (entries_.size() - 1);
    }

    std::vector<Entry> entries_;
    int shift_;
};

}  // namespace daqloom::protocol

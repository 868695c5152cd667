// The pending events of a simulation, earliest first.
//
// A radix wheel. Times are read as digits of kDigitBits bits; an event waits on the level of the
// highest digit in which its time differs from the cursor (a time no later than any event waiting
// in the wheel), in the slot that this digit names:
//
//     level 2   . . . # . # .      slots of 4096 ps     # has events; slots behind the cursor are
//     level 1   . . # . . . .      slots of   64 ps       empty, so the first bit set in the
//     level 0   . # . . . # .      slots of    1 ps       bitmap of the lowest level is next
//
// All events of a level come before all events of the level above. To pop, the earliest slot is
// taken: when it holds a few events, they are sorted into `front_` and handed out one by one, from
// whatever level they are on; when it holds many, the cursor enters the slot and they are spread
// over the levels below. So an event is moved about once per factor 64 in density, not once per
// digit, and the queue adapts itself to any mean spacing.
//
// Equal times leave in order of insertion: slots are lists that grow at their end, a slot is spread
// before anything can be pushed past it into the levels below, and sorting is stable.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace daqloom::sim {

/// Something that happens at a time: what, and to which object, is the caller's business.
struct Event {
    base::Time at;
    std::uint32_t kind = 0;
    std::uint32_t index = 0;

    friend bool operator==(const Event&, const Event&) = default;
};

/// Priority queue of events; time never runs backwards: pushes lie at or after the last pop.
///
/// Push and pop are O(1) at any number of pending events (at most 12 moves of an event in its
/// life, about 2 in practice). Memory: 20 bytes for each event of the greatest number ever
/// pending, plus 6 KB; none is allocated below that number or below `reserve`.
class EventQueue {
  public:
    EventQueue() { clear(); }

    /// Requires now() <= event.at and 0 <= event.at.
    void push(Event event) {
        assert(event.at >= now_);
        ++size_;
        peak_size_ = std::max(peak_size_, size_);
        if (event.at < front_last_) {
            insert_in_front(event);
        } else {
            append(take_node(event), event.at);
        }
    }

    /// Removes and returns the earliest event, of equal ones the first pushed. Requires !empty().
    Event pop() {
        assert(!empty());
        if (front_begin_ == front_end_) {
            refill_front();
        }
        const Event event = front_[front_begin_++];
        --size_;
        now_ = event.at;
        return event;
    }

    /// Time of the earliest event. Requires !empty(). Costs a walk over the earliest slot now and
    /// then: to stop a run at a given time, rather push an event that says so.
    [[nodiscard]] base::Time next_time() const {
        assert(!empty());
        return front_begin_ != front_end_ ? front_[front_begin_].at : earliest_in_wheel();
    }

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// The greatest size() since construction or clear().
    [[nodiscard]] std::size_t peak_size() const { return peak_size_; }
    /// Time of the event popped last; zero before the first.
    [[nodiscard]] base::Time now() const { return now_; }

    /// Makes room for this many pending events.
    void reserve(std::size_t events) {
        events_.reserve(events);
        link_.reserve(kSlots + events);
    }

    /// Forgets all events and turns the clock back to zero; keeps the memory.
    void clear() {
        link_.resize(kSlots);
        events_.clear();
        free_ = kNone;
        for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
            last_[slot] = slot;
        }
        occupied_slots_.fill(0);
        occupied_levels_ = 0;
        cursor_ = 0;
        front_begin_ = front_end_ = 0;
        front_last_ = now_ = base::Time::zero();
        size_ = peak_size_ = 0;
    }

  private:
    static constexpr unsigned kDigitBits = 6;
    static constexpr std::uint32_t kSlotsPerLevel = 1U << kDigitBits;
    static constexpr std::uint32_t kLevels = 11;  // 11 · 6 bits >= the 63 of a time
    static constexpr std::uint32_t kSlots = kLevels * kSlotsPerLevel;
    static constexpr std::uint32_t kFrontCapacity = 8;
    static constexpr std::uint32_t kNone = ~0U;

    static std::uint64_t bits(base::Time t) { return static_cast<std::uint64_t>(t.ps); }

    [[nodiscard]] std::uint32_t level_of(base::Time at) const {
        const auto highest =
            63U - static_cast<unsigned>(std::countl_zero((bits(at) ^ cursor_) | 1));
        return (highest * 43) >> 8;  // highest / 6 for 0 … 63
    }

    [[nodiscard]] static std::uint32_t slot_of(base::Time at, std::uint32_t level) {
        const auto digit = bits(at) >> (level * kDigitBits);
        return level * kSlotsPerLevel + (static_cast<std::uint32_t>(digit) & (kSlotsPerLevel - 1));
    }

    void mark_occupied(std::uint32_t slot) {
        const auto level = slot / kSlotsPerLevel;
        occupied_slots_[level] |= std::uint64_t{1} << (slot % kSlotsPerLevel);
        occupied_levels_ |= 1U << level;
    }

    void append(std::uint32_t node, base::Time at) {
        const auto slot = slot_of(at, level_of(at));
        link_[last_[slot]] = node;  // no branch on empty: the last of an empty list is its head
        last_[slot] = node;
        mark_occupied(slot);
    }

    void prepend(std::uint32_t node, base::Time at) {
        const auto slot = slot_of(at, level_of(at));
        link_[node] = link_[slot];
        link_[slot] = node;
        if (last_[slot] == slot) {
            last_[slot] = node;
        }
        mark_occupied(slot);
    }

    std::uint32_t take_node(const Event& event) {
        if (free_ == kNone) {
            events_.push_back(event);
            link_.push_back(kNone);
            return static_cast<std::uint32_t>(link_.size() - 1);
        }
        const auto node = free_;
        free_ = link_[node];
        events_[node - kSlots] = event;
        return node;
    }

    /// The event belongs before the last one of the front. A full front gives its last event back
    /// to the wheel, to the head of its slot: its equals in the wheel were pushed later.
    void insert_in_front(const Event& event) {
        if (front_begin_ != 0) {
            std::move(front_.begin() + front_begin_, front_.begin() + front_end_, front_.begin());
            front_end_ -= front_begin_;
            front_begin_ = 0;
        }
        if (front_end_ == kFrontCapacity) {
            const Event displaced = front_[--front_end_];
            prepend(take_node(displaced), displaced.at);
        }
        auto place = front_end_++;
        for (; place > 0 && event.at < front_[place - 1].at; --place) {
            front_[place] = front_[place - 1];
        }
        front_[place] = event;
        front_last_ = front_[front_end_ - 1].at;
    }

    /// Moves the events of the earliest slot to the front, after spreading crowded slots.
    void refill_front() {
        for (;;) {
            const auto level = static_cast<std::uint32_t>(std::countr_zero(occupied_levels_));
            const auto digit = static_cast<std::uint32_t>(std::countr_zero(occupied_slots_[level]));
            const auto slot = level * kSlotsPerLevel + digit;
            const auto first = link_[slot];
            const auto last = last_[slot];

            front_begin_ = front_end_ = 0;
            auto node = first;
            front_[front_end_++] = event_of(node);
            while (node != last && front_end_ < kFrontCapacity) {
                node = link_[node];
                front_[front_end_++] = event_of(node);
            }

            if (node != last && level == 0) {  // all at one time: the others can wait
                link_[slot] = std::exchange(link_[node], free_);
                free_ = first;
            } else {
                last_[slot] = slot;
                occupied_slots_[level] &= occupied_slots_[level] - 1;
                occupied_levels_ &= ~(std::uint32_t{occupied_slots_[level] == 0} << level);
                if (node != last) {
                    spread(level, first, last);
                    continue;
                }
                link_[last] = free_;
                free_ = first;
                sort_front();
            }
            cursor_ = bits(front_[0].at);
            front_last_ = front_[front_end_ - 1].at;
            return;
        }
    }

    /// Enters a slot of `level` and hands its events to the levels below, in the same order.
    void spread(std::uint32_t level, std::uint32_t first, std::uint32_t last) {
        const auto shift = level * kDigitBits;
        cursor_ = bits(event_of(first).at) >> shift << shift;
        for (auto node = first;;) {
            const auto next = link_[node];
            append(node, event_of(node).at);
            if (node == last) {
                return;
            }
            node = next;
        }
    }

    /// Stable insertion sort: the front holds one or two events most of the time.
    void sort_front() {
        for (std::uint32_t i = 1; i < front_end_; ++i) {
            const Event event = front_[i];
            auto place = i;
            for (; place > 0 && event.at < front_[place - 1].at; --place) {
                front_[place] = front_[place - 1];
            }
            front_[place] = event;
        }
    }

    [[nodiscard]] base::Time earliest_in_wheel() const {
        const auto level = static_cast<std::uint32_t>(std::countr_zero(occupied_levels_));
        const auto digit = static_cast<std::uint32_t>(std::countr_zero(occupied_slots_[level]));
        const auto slot = level * kSlotsPerLevel + digit;
        auto node = link_[slot];
        auto earliest = event_of(node).at;
        while (node != last_[slot] && level != 0) {
            node = link_[node];
            earliest = std::min(earliest, event_of(node).at);
        }
        return earliest;
    }

    [[nodiscard]] const Event& event_of(std::uint32_t node) const { return events_[node - kSlots]; }

    // Nodes are numbered from kSlots; link_[slot] is the first node of a slot's list, link_[node]
    // the next one of its list or of the free list. last_[slot] == slot says that it is empty.
    std::vector<Event> events_;
    std::vector<std::uint32_t> link_;
    std::array<std::uint32_t, kSlots> last_{};
    std::uint32_t free_ = kNone;

    std::array<std::uint64_t, kLevels> occupied_slots_{};
    std::uint32_t occupied_levels_ = 0;
    std::uint64_t cursor_ = 0;

    // Sorted. No event of the wheel is earlier than front_last_, which stays valid (as a time
    // already past) when the front has run empty.
    std::array<Event, kFrontCapacity> front_{};
    std::uint32_t front_begin_ = 0;
    std::uint32_t front_end_ = 0;
    base::Time front_last_;

    base::Time now_;
    std::size_t size_ = 0;
    std::size_t peak_size_ = 0;
};

}  // namespace daqloom::sim

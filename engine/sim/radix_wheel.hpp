// A radix wheel: a priority queue of events that are far in the future.
//
// A time in picoseconds is read as eight digits of one byte. An event waits on the level of the
// highest byte in which its time differs from the cursor, a time no later than any event in the
// wheel; that byte is its slot:
//
//     level 2   . . . . # . #   65.5 ns per slot     #: holds events. The slots up to the cursor
//     level 1   . . # # . . .    256 ps per slot        are empty, so that the first bit set in
//     level 0   . # . . # . .      1 ps per slot        the bitmap of all slots is the next slot
//
// A pop takes the earliest slot as a whole. A few events are sorted into a list, the front, from
// which they leave one by one; if there are more, they are spread over the levels below. An event
// moves once per factor 256 in density, not once per byte: twice in its life if events are 5 ns
// apart and delays below 16.8 µs, for any number of pending events.
//
// Events at equal times leave in order of insertion. They share a slot or are all in the front. A
// slot is a list that grows at its end, and is spread in order before any event can be pushed to
// the levels below; sorting is stable.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "sim/event.hpp"

namespace daqloom::sim {

/// Priority queue for times that never run backwards.
///
/// Push and pop take O(1), about 40 instructions each, at any number of pending events. The wheel
/// takes 32 KB and 24 bytes per event; only a new peak of pending events allocates.
class RadixWheel {
  public:
    RadixWheel();
    RadixWheel(const RadixWheel&) = delete;  ///< slots point into the queue itself
    RadixWheel& operator=(const RadixWheel&) = delete;

    /// Requires 0 <= now() <= event.at.
    void push(Event event) {
        assert(now_ <= event.at);
        if (++size_ > peak_size_) {
            peak_size_ = size_;
        }
        if (free_ == nullptr) [[unlikely]] {
            grow();
        }
        Node* const node = std::exchange(free_, free_->next);
        node->event = event;
        if (event.at > front_last_) {
            insert_in_wheel(node);
        } else {
            insert_in_front(node);
        }
    }

    /// Removes and returns the earliest event; among events at equal times, the one pushed first.
    /// Requires !empty().
    Event pop() {
        assert(!empty());
        if (front_ == nullptr) {
            refill_front();
        }
        Node* const node = std::exchange(front_, front_->next);
        node->next = std::exchange(free_, node);
        --size_;
        now_ = node->event.at;
        return node->event;
    }

    /// Time of the earliest event. Requires !empty(). May search a crowded slot: to end a run at a
    /// given time, push an event for that time and do not call this function.
    [[nodiscard]] base::Time next_time() const;

    /// A lower bound for the time of the earliest event, found without a search. Requires !empty().
    [[nodiscard]] base::Time earliest_possible() const {
        assert(!empty());
        if (front_ != nullptr) {
            return front_->event.at;
        }
        const auto slot = first_slot();
        const auto shift = slot / kSlotsPerLevel * kDigitBits;
        return {slots_[slot].head->event.at.ps >> shift << shift};
    }

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Size of the nodes (B).
    [[nodiscard]] std::size_t memory() const { return pool_size_ * sizeof(Node); }
    /// The greatest size() since construction or clear().
    [[nodiscard]] std::size_t peak_size() const { return peak_size_; }
    /// Time of the event popped last; zero before the first pop.
    [[nodiscard]] base::Time now() const { return now_; }

    /// Reserves memory for this many pending events.
    void reserve(std::size_t events);
    /// Removes all events and sets the clock back to zero; keeps the memory.
    void clear();

  private:
    struct Node {
        Event event;
        Node* next;
    };

    /// A list whose empty case needs no branch: `end` points to the pointer that the next node
    /// sets, at first to `head`. The `next` of the last node is set only when the list is taken.
    struct Slot {
        Node* head;
        Node** end;
    };

    static constexpr unsigned kDigitBits = 8;
    static constexpr std::size_t kSlotsPerLevel = 256;
    static constexpr std::size_t kSlots = 8 * kSlotsPerLevel;
    static constexpr int kFrontCapacity = 8;  ///< as fast as 4 … 16: sorting against spreading

    static std::uint64_t bits(base::Time at) { return static_cast<std::uint64_t>(at.ps); }

    void insert_in_wheel(Node* node) {
        const auto at = bits(node->event.at);
        const auto highest_bit = 63U - static_cast<unsigned>(std::countl_zero((at ^ cursor_) | 1));
        const auto shift = highest_bit & ~(kDigitBits - 1);
        const auto digit = static_cast<std::uint8_t>(at >> shift);
        const auto slot = shift / kDigitBits * kSlotsPerLevel + digit;
        *slots_[slot].end = node;
        slots_[slot].end = &node->next;
        occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
        occupied_words_ |= std::uint32_t{1} << (slot / 64);
    }

    [[nodiscard]] std::size_t first_slot() const {
        const auto word = static_cast<std::size_t>(std::countr_zero(occupied_words_));
        return word * 64 + static_cast<std::size_t>(std::countr_zero(occupied_[word]));
    }

    /// Empties the first slot.
    Node* take(std::size_t slot) {
        const auto word = slot / 64;
        occupied_[word] &= occupied_[word] - 1;
        occupied_words_ &= ~(std::uint32_t{occupied_[word] == 0} << word);
        *slots_[slot].end = nullptr;
        slots_[slot].end = &slots_[slot].head;
        return slots_[slot].head;
    }

    void refill_front() {
        for (;;) {
            const auto slot = first_slot();
            Node* const oldest = take(slot);
            if (oldest->next == nullptr) {
                front_ = front_tail_ = oldest;
            } else if (slot < kSlotsPerLevel) {
                hand_over_equals(oldest);
            } else if (few(oldest)) {
                sort_into_front(oldest);
            } else {
                const auto shift = slot / kSlotsPerLevel * kDigitBits;
                cursor_ = bits(oldest->event.at) >> shift << shift;
                spread(oldest);
                continue;
            }
            cursor_ = bits(front_->event.at);
            front_last_ = front_tail_->event.at;
            return;
        }
    }

    static bool few(const Node* node) {
        int n = 0;
        while (node != nullptr && n <= kFrontCapacity) {
            node = node->next;
            ++n;
        }
        return n <= kFrontCapacity;
    }

    void spread(Node* node) {
        while (node != nullptr) {
            Node* const next = node->next;
            insert_in_wheel(node);
            node = next;
        }
    }

    /// Stable insertion sort of a list.
    void sort_into_front(Node* node) {
        front_ = nullptr;
        while (node != nullptr) {
            Node** place = &front_;
            while (*place != nullptr && (*place)->event.at <= node->event.at) {
                place = &(*place)->next;
            }
            Node* const next = std::exchange(node->next, *place);
            *place = node;
            if (node->next == nullptr) {
                front_tail_ = node;
            }
            node = next;
        }
    }

    void hand_over_equals(Node* oldest);
    void insert_in_front(Node* node);
    void grow();

    Node* free_ = nullptr;
    Node* front_ = nullptr;
    Node* front_tail_ = nullptr;  ///< valid when the front holds something
    /// Upper bound of the times in the front, the sorted next events. Later events are in slots. An
    /// empty front keeps the bound: an event pushed at the time of the last pop enters the front.
    base::Time front_last_{-1};
    base::Time now_;
    std::uint64_t cursor_ = 0;
    std::size_t size_ = 0;
    std::size_t peak_size_ = 0;

    std::uint32_t occupied_words_ = 0;  ///< which words of occupied_ are not zero
    std::array<std::uint64_t, kSlots / 64> occupied_{};
    std::array<Slot, kSlots> slots_;

    std::vector<std::unique_ptr<Node[]>> pool_;
    std::size_t pool_size_ = 0;
};

}  // namespace daqloom::sim

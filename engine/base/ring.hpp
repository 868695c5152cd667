// A first-in first-out queue of values in one growing, power-of-two array.
//
//      head                 tail
//       v                    v
//   | . | a | b | c | d | e | . | . |
//
// Elements are addressed by their distance from the head. Values lie in the order in which they are
// read, so that a walk along the queue is sequential in memory and cheap.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace daqloom::base {

/// `Inline`: number of elements, a power of two or none, that lie in the ring itself before it
/// allocates an array; a queue that rarely has more elements touches no second cache line.
template <class T, std::uint32_t Inline = 0>
class Ring {
    static_assert(std::is_trivially_copyable_v<T>);
    static_assert((Inline & (Inline - 1)) == 0);

  public:
    [[nodiscard]] bool empty() const { return head_ == tail_; }
    [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }

    [[nodiscard]] T& front() { return slots()[head_ & mask_]; }
    [[nodiscard]] const T& front() const { return slots()[head_ & mask_]; }
    [[nodiscard]] T& back() { return slots()[(tail_ - 1) & mask_]; }
    [[nodiscard]] T& operator[](std::uint32_t place) { return slots()[(head_ + place) & mask_]; }
    [[nodiscard]] const T& operator[](std::uint32_t place) const {
        return slots()[(head_ + place) & mask_];
    }

    void push(const T& value) { append() = value; }

    /// Appends an element and returns it; its value is unspecified until the caller fills it in.
    T& append() {
        if (size() == capacity_) [[unlikely]] {
            grow(capacity_ == 0 ? 4 : 2 * capacity_);
        }
        return slots()[tail_++ & mask_];
    }

    void pop() {
        ++head_;
        if (head_ == tail_) {
            head_ = tail_ = 0;  // begin anew with slots that are still in the cache
        }
    }
    /// Prefetches the cache line a few elements behind the head: with many queues, the processor
    /// does not detect that each queue is read in order.
    void prefetch() const { __builtin_prefetch(&slots()[(head_ + 4) & mask_]); }

    /// Size of the array (B); 0 while the elements are inline.
    [[nodiscard]] std::size_t memory() const {
        return capacity_ == Inline ? 0 : capacity_ * sizeof(T);
    }

    void clear() { head_ = tail_; }

    /// Reserves memory for `size` elements, up to which no call allocates.
    void reserve(std::uint32_t size) {
        if (size > capacity_) {
            grow(std::bit_ceil(size));
        }
    }

    /// Inserts `value` at `place`; the elements from `place` on move back by one.
    void insert(std::uint32_t place, const T& value) {
        push(value);
        for (std::uint32_t i = size() - 1; i > place; --i) {
            (*this)[i] = (*this)[i - 1];
        }
        (*this)[place] = value;
    }

    /// Removes the element at `place`; the elements behind it move forward by one.
    void erase(std::uint32_t place) {
        for (std::uint32_t i = place; i + 1 < size(); ++i) {
            (*this)[i] = (*this)[i + 1];
        }
        --tail_;
    }

  private:
    [[nodiscard]] T* slots() {
        if constexpr (Inline != 0) {
            return capacity_ == Inline ? few_.data() : many_.get();
        }
        return many_.get();
    }
    [[nodiscard]] const T* slots() const { return const_cast<Ring*>(this)->slots(); }

    /// `capacity`: a power of two.
    void grow(std::uint32_t capacity) {
        auto larger = std::make_unique<T[]>(capacity);
        const std::uint32_t count = size();
        for (std::uint32_t i = 0; i < count; ++i) {
            larger[i] = (*this)[i];
        }
        many_ = std::move(larger);
        capacity_ = capacity;
        mask_ = capacity - 1;
        head_ = 0;
        tail_ = count;
    }

    std::uint32_t head_ = 0;
    std::uint32_t tail_ = 0;
    std::uint32_t capacity_ = Inline;
    std::uint32_t mask_ = Inline == 0 ? 0 : Inline - 1;
    std::unique_ptr<T[]> many_;
    [[no_unique_address]] std::array<T, Inline> few_{};
};

}  // namespace daqloom::base

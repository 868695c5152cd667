// First in, first out, without an allocation once it has been as long as it gets.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace daqloom::base {

/// A queue in a ring that doubles when it is full. (std::deque allocates and frees a block every
/// few hundred elements that pass through, however short it stays.)
template <class T>
class Fifo {
  public:
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }

    /// Precondition of front and pop: not empty.
    [[nodiscard]] const T& front() const { return ring_[head_]; }

    T pop() {
        T value = std::move(ring_[head_]);
        head_ = wrapped(head_ + 1);
        --size_;
        return value;
    }

    void push(T value) {
        if (size_ == ring_.size()) {
            reserve(ring_.empty() ? 16 : 2 * ring_.size());
        }
        ring_[wrapped(head_ + size_)] = std::move(value);
        ++size_;
    }

    /// Makes room for at least `capacity` elements.
    void reserve(std::size_t capacity) {
        std::size_t length = ring_.empty() ? 1 : ring_.size();
        while (length < capacity) {
            length *= 2;
        }
        if (length == ring_.size()) {
            return;
        }
        std::vector<T> larger(length);
        for (std::size_t i = 0; i < size_; ++i) {
            larger[i] = std::move(ring_[wrapped(head_ + i)]);
        }
        ring_ = std::move(larger);
        head_ = 0;
    }

  private:
    /// The ring's length is a power of two.
    [[nodiscard]] std::size_t wrapped(std::size_t position) const {
        return position & (ring_.size() - 1);
    }

    std::vector<T> ring_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

}  // namespace daqloom::base

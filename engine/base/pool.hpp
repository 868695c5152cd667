// A pool of values, each identified by the number of its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace daqloom::base {

/// Slots freed last are reused first; memory is allocated only if more slots are in use than ever
/// before.
template <class T>
class Pool {
  public:
    std::uint32_t put(const T& value) {
        if (free_ == 0) [[unlikely]] {
            slots_.push_back(value);
            freed_.resize(slots_.size());  // room for every slot: release() never allocates
            return static_cast<std::uint32_t>(slots_.size() - 1);
        }
        const std::uint32_t slot = freed_[--free_];
        slots_[slot] = value;
        return slot;
    }

    [[nodiscard]] T& operator[](std::uint32_t slot) { return slots_[slot]; }
    [[nodiscard]] const T& operator[](std::uint32_t slot) const { return slots_[slot]; }

    void release(std::uint32_t slot) { freed_[free_++] = slot; }

    [[nodiscard]] std::size_t in_use() const { return slots_.size() - free_; }
    /// Size of the arrays (B).
    [[nodiscard]] std::size_t memory() const {
        return slots_.capacity() * sizeof(T) + freed_.capacity() * sizeof(std::uint32_t);
    }

  private:
    std::vector<T> slots_;
    std::vector<std::uint32_t> freed_;  ///< the first `free_` are free slots, the latest last
    std::size_t free_ = 0;
};

}  // namespace daqloom::base

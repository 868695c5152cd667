// A pool of values, each identified by the number of its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace daqloom::base {

/// Freed slots are reused, the latest first; allocates only if more slots are in use than ever
/// before.
template <class T>
class Pool {
  public:
    std::uint32_t put(const T& value) {
        if (free_.empty()) {
            slots_.push_back(value);
            return static_cast<std::uint32_t>(slots_.size() - 1);
        }
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        slots_[slot] = value;
        return slot;
    }

    [[nodiscard]] T& operator[](std::uint32_t slot) { return slots_[slot]; }
    [[nodiscard]] const T& operator[](std::uint32_t slot) const { return slots_[slot]; }

    void release(std::uint32_t slot) { free_.push_back(slot); }

    [[nodiscard]] std::size_t in_use() const { return slots_.size() - free_.size(); }

  private:
    std::vector<T> slots_;
    std::vector<std::uint32_t> free_;
};

}  // namespace daqloom::base

// A counter that one thread increments and others read meanwhile.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.hpp"

namespace daqloom::live {

/// One thread writes, any thread reads. It needs no locked instruction, since only one thread
/// writes.
class Counter {
  public:
    Counter() = default;
    Counter(const Counter& other) : value_(other.get()) {}
    Counter& operator=(const Counter& other) {
        set(other.get());
        return *this;
    }

    void add(std::uint64_t more) { set(get() + more); }
    void add(base::Time more) { add(static_cast<std::uint64_t>(more.ps)); }
    void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

    Counter& operator++() {
        add(1);
        return *this;
    }
    Counter& operator+=(std::uint64_t more) {
        add(more);
        return *this;
    }
    operator std::uint64_t() const { return get(); }  // NOLINT: it is a number

  private:
    std::atomic<std::uint64_t> value_ = 0;
};

/// A counter that tells what is so now: readings of several processes are not summed.
class Gauge : public Counter {};

}  // namespace daqloom::live

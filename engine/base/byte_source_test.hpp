// For tests and fuzzing: a sequence of choices taken from arbitrary bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace daqloom::base {

/// Reads numbers from a string of bytes; returns zeros after its end.
class ByteSource {
  public:
    explicit ByteSource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    std::uint8_t byte() {
        if (bytes_.empty()) {
            return 0;
        }
        const std::uint8_t value = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return value;
    }
    /// A number in [lowest, highest].
    std::int64_t number(std::int64_t lowest, std::int64_t highest) {
        const std::int64_t high = byte();
        const std::int64_t value = high * 256 + byte();
        return lowest + value % (highest - lowest + 1);
    }
    template <class T, std::size_t N>
    T one_of(const T (&choices)[N]) {
        return choices[byte() % N];
    }
    bool coin() { return (byte() & 1) != 0; }

  private:
    std::span<const std::uint8_t> bytes_;
};

/// Random bytes; their number is at least `shortest` and below `shortest` + `lengths`.
inline std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t shortest,
                                              std::uint64_t lengths) {
    RandomStream random(seed, "inputs");
    std::vector<std::uint8_t> bytes(shortest + random.uniform_int(lengths));
    for (std::uint8_t& value : bytes) {
        value = static_cast<std::uint8_t>(random.uniform_int(256));
    }
    return bytes;
}

}  // namespace daqloom::base

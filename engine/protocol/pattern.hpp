// What a generated fragment contains, so that every byte of a built event can be checked.
#pragma once

#include <cstdint>
#include <span>

#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/mfp_sizes.hpp"

#include <vector>

namespace daqloom::protocol {

/// The bytes of a source's fragment of one event: 64-bit little-endian words w, w + c, w + 2c, …
/// cut off at its size, where w is a hash of source and event and c an odd constant. Any other
/// source, event, place or length shows.
void fill_pattern(std::uint16_t source, std::uint64_t event, std::span<std::uint8_t> payload);

/// The offset of the first byte that is not of the pattern; the size if all are.
std::size_t check_pattern(std::uint16_t source, std::uint64_t event,
                          std::span<const std::uint8_t> payload);

/// Sizes of fragments that a checker can tell without having seen those before: each is drawn from
/// a table of 2^16 sizes by a hash of source and event.
class PatternSizes {
  public:
    /// `mean`: of a fragment, 0 to 60 000. The same in all processes for the same arguments.
    PatternSizes(FragmentSizes kind, base::Bytes mean, std::uint64_t seed);

    [[nodiscard]] std::uint16_t size(std::uint16_t source, std::uint64_t event) const;
    [[nodiscard]] std::uint16_t largest() const { return largest_; }

  private:
    std::vector<std::uint16_t> table_;
    std::uint16_t largest_ = 0;
};

}  // namespace daqloom::protocol

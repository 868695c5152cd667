// The content of a generated fragment, by which every byte of a built event can be checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/data/mfp_sizes.hpp"

namespace daqloom::protocol {

inline constexpr std::uint64_t pattern_step = 0x9e3779b97f4a7c15;  ///< 2^64 over the golden ratio

/// Hash of source id and event: each input bit changes about half of the bits of the result.
constexpr std::uint64_t pattern_hash(std::uint16_t source_id, std::uint64_t event) {
    return base::mixed(event + pattern_step * (std::uint64_t{source_id} + 1));
}

/// Writes the content of a stream's fragment of one event: 64-bit little-endian words w, w + c, w +
/// 2c, … cut off at the fragment size, where w is `pattern_hash` and c is `pattern_step`. A check
/// detects a different source id, event, offset or length.
void fill_pattern(std::uint16_t source_id, std::uint64_t event, std::span<std::uint8_t> payload);

/// The offset of the first byte that differs from the pattern; the payload's size if none does.
std::size_t check_pattern(std::uint16_t source_id, std::uint64_t event,
                          std::span<const std::uint8_t> payload);

/// Sizes of fragments that a checker can compute for each fragment independently.
class PatternSizes {
  public:
    static constexpr base::Bytes largest_mean = 60'000;
    static constexpr base::Bytes largest_fragment = 65'535;

    /// `mean`: mean size of a fragment, 0 to `largest_mean`. The constructor draws a table of 2^16
    /// sizes, in which the first 16 bits of `pattern_hash` select a fragment's size. All processes
    /// have the same table for the same arguments.
    PatternSizes(FragmentSizes kind, base::Bytes mean, std::uint64_t seed);

    /// Sizes of a readout unit's parts of events, each split into `pieces` pieces: piece p of event
    /// k has number k × pieces + p. The first 2^16 pieces have the event sizes that a simulation
    /// with this seed draws; then the sizes repeat. Fails if a piece is too large.
    static base::expected<PatternSizes> of_events(const EventSizeConfig& events,
                                                  const FragmentShares& shares,
                                                  ReadoutIndex readout, std::uint32_t pieces,
                                                  std::uint64_t seed);

    [[nodiscard]] std::uint16_t size(std::uint16_t source_id, std::uint64_t event) const {
        return table_[is_in_order_ ? event % table_.size() : pattern_hash(source_id, event) >> 48];
    }
    [[nodiscard]] std::uint16_t largest() const { return largest_; }

  private:
    PatternSizes() = default;

    std::vector<std::uint16_t> table_;
    std::uint16_t largest_ = 0;
    bool is_in_order_ = false;
};

/// The largest event that `PatternSizes::of_events` may encounter.
base::expected<base::Bytes> largest_event(const EventSizeConfig& events, std::uint64_t seed);

}  // namespace daqloom::protocol

// Multi-fragment packets (MFPs) with generated fragments. Their content depends only on the
// settings, the stream and the first event, so that a checker can verify every byte.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/data/pattern.hpp"

namespace daqloom::protocol {

struct MfpGeneratorConfig {
    std::uint16_t source_id = 0;
    std::uint32_t packing = 1;             ///< fragments of an MFP, 1 … 65 535
    std::uint8_t align = usual_mfp_align;  ///< log2
    std::shared_ptr<const PatternSizes> sizes = nullptr;
};

/// The MFPs of one stream. Cheap to copy: streams with the same mean share a table of sizes.
class MfpGenerator {
  public:
    static constexpr std::uint8_t version = 3;
    static constexpr std::uint8_t type = 0;  ///< type of every fragment

    /// Fails without `sizes`, or if an MFP could exceed the range of its 32-bit packet size.
    static base::expected<MfpGenerator> make(MfpGeneratorConfig config);

    /// Size of the MFP of the events from `event` on.
    [[nodiscard]] base::Bytes bytes_of(std::uint64_t event) const;
    /// Upper limit on the sizes of the MFPs.
    [[nodiscard]] base::Bytes largest() const { return largest_; }
    /// Writes the MFP of the events from `event` on to the front of `out`, and returns its size.
    /// Fails if `out` is too short, and then leaves its content undefined.
    base::expected<base::Bytes> generate(std::uint64_t event, std::span<std::uint8_t> out) const;

    [[nodiscard]] std::uint16_t source_id() const { return config_.source_id; }
    [[nodiscard]] std::uint16_t packing() const {
        return static_cast<std::uint16_t>(config_.packing);
    }
    [[nodiscard]] std::uint8_t align() const { return config_.align; }
    /// Size of the fragment of one event.
    [[nodiscard]] std::uint16_t size(std::uint64_t event) const {
        return config_.sizes->size(config_.source_id, event);
    }

  private:
    MfpGenerator(MfpGeneratorConfig config, base::Bytes largest)
        : config_(std::move(config)), largest_(largest) {}

    MfpGeneratorConfig config_;
    base::Bytes largest_;
};

}  // namespace daqloom::protocol

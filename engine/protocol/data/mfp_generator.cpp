#include "protocol/data/mfp_generator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/data/little_endian.hpp"
#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {

namespace {

using base::Bytes;

std::span<std::uint8_t> part(std::span<std::uint8_t> memory, Bytes at, Bytes bytes) {
    return memory.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
}

/// Writes zeros up to `end`, and possibly a few bytes beyond, which are overwritten later.
void pad(std::span<std::uint8_t> memory, Bytes at, Bytes end) {
    constexpr Bytes word = sizeof(std::uint64_t);
    if (end - at <= word && at + word <= static_cast<Bytes>(memory.size())) {
        put_number<std::uint64_t>(memory, static_cast<std::size_t>(at), 0);
    } else {
        std::ranges::fill(part(memory, at, end - at), std::uint8_t{0});
    }
}

}  // namespace

base::expected<MfpGenerator> MfpGenerator::make(MfpGeneratorConfig config) {
    DAQLOOM_REFUSE_IF(config.packing < 1 || config.packing > most_mfp_fragments,
                      "MFPs of {} fragments: an MFP counts its fragments with 16 bits; give a "
                      "packing of 1 to {}",
                      config.packing, most_mfp_fragments);
    DAQLOOM_REFUSE_IF(config.align > largest_mfp_align, "MFP align {}; give 0 to {}", config.align,
                      largest_mfp_align);
    DAQLOOM_REFUSE_IF(config.sizes == nullptr,
                      "MFPs of generated fragments without sizes; give a table of sizes");
    const Bytes largest = mfp_overhead(static_cast<std::uint16_t>(config.packing)) +
                          config.packing * padded_to(config.sizes->largest(), config.align);
    DAQLOOM_REFUSE_IF(largest > largest_mfp_size,
                      "MFPs of {} fragments of up to {} bytes can take {} bytes, and an MFP at "
                      "most {}; give a smaller packing or smaller fragments",
                      config.packing, config.sizes->largest(), largest, largest_mfp_size);
    return MfpGenerator(std::move(config), largest);
}

Bytes MfpGenerator::bytes_of(std::uint64_t event) const {
    Bytes bytes = mfp_overhead(packing());
    for (std::uint32_t i = 0; i < config_.packing; ++i) {
        bytes += padded_to(size(event + i), config_.align);
    }
    return bytes;
}

base::expected<Bytes> MfpGenerator::generate(std::uint64_t event,
                                             std::span<std::uint8_t> out) const {
    const Bytes payloads_at = mfp_overhead(packing());
    const auto room = static_cast<Bytes>(out.size());
    DAQLOOM_REFUSE_IF(room < payloads_at, "MFP of {} bytes; there is room for {}", bytes_of(event),
                      room);
    const auto front = part(out, 0, payloads_at);
    const auto sizes_at = static_cast<std::size_t>(mfp_header_bytes + padded_to(packing(), 2));
    std::ranges::fill(front, std::uint8_t{0});  // types are 0, and so is padding
    Bytes bytes = payloads_at;
    for (std::size_t i = 0; i < config_.packing; ++i) {
        const std::uint16_t fragment = size(event + i);
        put_number<std::uint16_t>(front, sizes_at + 2 * i, fragment);
        bytes += padded_to(fragment, config_.align);
    }
    DAQLOOM_REFUSE_IF(room < bytes, "MFP of {} bytes; there is room for {}", bytes, room);
    put_number<std::uint16_t>(front, 0, mfp_magic);
    put_number<std::uint16_t>(front, 2, packing());
    put_number<std::uint32_t>(front, 4, static_cast<std::uint32_t>(bytes));
    put_number<std::uint64_t>(front, 8, event);
    put_number<std::uint16_t>(front, 16, config_.source_id);
    put_number<std::uint8_t>(front, 18, config_.align);
    put_number<std::uint8_t>(front, 19, version);
    Bytes at = payloads_at;
    for (std::size_t i = 0; i < config_.packing; ++i) {
        const Bytes fragment = number_at<std::uint16_t>(front, sizes_at + 2 * i);
        const Bytes padded = padded_to(fragment, config_.align);
        fill_pattern(config_.source_id, event + i, part(out, at, fragment));
        pad(out.first(static_cast<std::size_t>(bytes)), at + fragment, at + padded);
        at += padded;
    }
    return bytes;
}

}  // namespace daqloom::protocol

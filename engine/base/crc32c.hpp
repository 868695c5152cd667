// CRC32C: the cyclic redundancy check with Castagnoli's polynomial, as in iSCSI (RFC 3720).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace daqloom::base {

/// The checksum of some bytes; of several pieces, with the checksum `before` of those in front:
/// crc32c(b, crc32c(a)) is that of a and b. By the processor's instruction where it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// The same by tables, on any processor.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace daqloom::base

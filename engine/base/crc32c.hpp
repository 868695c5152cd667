// CRC32C: the cyclic redundancy check with Castagnoli's polynomial, as in iSCSI (RFC 3720).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace daqloom::base {

/// Checksum of `bytes`, continued from the checksum `before` of the preceding bytes: crc32c(b,
/// crc32c(a)) is the checksum of a and b. Uses CRC instructions if the processor has them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

struct Crc32cMethod {
    const char* name;
    std::uint32_t (*state)(std::uint32_t before, const std::byte* bytes, std::size_t count);

    std::uint32_t operator()(std::span<const std::byte> bytes, std::uint32_t before = 0) const {
        return ~state(~before, bytes.data(), bytes.size());
    }
};
/// Methods that this processor supports, the fastest first.
std::span<const Crc32cMethod> crc32c_methods();

}  // namespace daqloom::base

// Little-endian numbers in packets, at any offset.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace daqloom::protocol {

static_assert(std::endian::native == std::endian::little, "packets are read as they lie in memory");

/// Precondition: `at` + sizeof(Number) is within `memory`.
template <class Number>
Number number_at(std::span<const std::uint8_t> memory, std::size_t at) {
    static_assert(std::is_unsigned_v<Number>);
    Number value;
    std::memcpy(&value, memory.data() + at, sizeof value);
    return value;
}

template <class Number>
void put_number(std::span<std::uint8_t> memory, std::size_t at,
                std::type_identity_t<Number> value) {
    static_assert(std::is_unsigned_v<Number>);
    std::memcpy(memory.data() + at, &value, sizeof value);
}

}  // namespace daqloom::protocol

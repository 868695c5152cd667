#include "base/crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace daqloom::base {

namespace {

using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t kPolynomial = 0x82f63b78;  ///< bits reversed
constexpr std::size_t kWord = sizeof(std::uint64_t);

/// kBytes[n][b]: the state after byte b and n zero bytes, from state 0.
constexpr std::array<Table, kWord> kBytes = [] {
    std::array<Table, kWord> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t state = byte;
        for (int bit = 0; bit < 8; ++bit) {
            state = state >> 1 ^ ((state & 1) != 0 ? kPolynomial : 0);
        }
        tables[0][byte] = state;
    }
    for (std::size_t zeros = 1; zeros < kWord; ++zeros) {
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t state = tables[zeros - 1][byte];
            tables[zeros][byte] = state >> 8 ^ tables[0][state & 0xff];
        }
    }
    return tables;
}();

std::uint64_t word_at(const std::byte* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

std::uint32_t by_tables(std::uint32_t state, const std::byte* bytes, std::size_t count) {
    for (; count >= kWord; bytes += kWord, count -= kWord) {
        const std::uint64_t word = word_at(bytes) ^ state;
        state = 0;
        for (std::size_t i = 0; i < kWord; ++i) {
            state ^= kBytes[kWord - 1 - i][word >> 8 * i & 0xff];
        }
    }
    for (; count > 0; ++bytes, --count) {
        state = state >> 8 ^ kBytes[0][(state ^ std::to_integer<std::uint32_t>(*bytes)) & 0xff];
    }
    return state;
}

#if defined(__x86_64__)

/// Advances a state over zero bytes: a linear function, as a table for each byte of the state.
using Advance = std::array<Table, 4>;

constexpr std::uint32_t apply(const Advance& advance, std::uint32_t state) {
    return advance[0][state & 0xff] ^ advance[1][state >> 8 & 0xff] ^
           advance[2][state >> 16 & 0xff] ^ advance[3][state >> 24];
}

/// Advance over 2^doublings zero bytes.
constexpr Advance advance_by(int doublings) {
    std::array<std::uint32_t, 32> columns{};  // what each bit of a state becomes
    for (std::size_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t state = std::uint32_t{1} << bit;
        columns[bit] = state >> 8 ^ kBytes[0][state & 0xff];
    }
    const auto product = [&columns](std::uint32_t state) {
        std::uint32_t sum = 0;
        for (std::size_t bit = 0; state != 0; ++bit, state >>= 1) {
            sum ^= (state & 1) != 0 ? columns[bit] : 0;
        }
        return sum;
    };
    for (int i = 0; i < doublings; ++i) {
        auto twice = columns;
        for (std::uint32_t& column : twice) {
            column = product(column);
        }
        columns = twice;
    }
    Advance advance{};
    for (std::uint32_t place = 0; place < 4; ++place) {
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            advance[place][byte] = product(byte << 8 * place);
        }
    }
    return advance;
}

template <int Doublings>
constexpr Advance kAdvance = advance_by(Doublings);

/// Processes three blocks at a time: an instruction takes three cycles, and one begins in each.
template <int Doublings>
__attribute__((target("sse4.2"))) std::uint64_t by_blocks(std::uint64_t state,
                                                          const std::byte*& bytes,
                                                          std::size_t& count) {
    constexpr std::size_t block = std::size_t{1} << Doublings;
    for (; count >= 3 * block; bytes += 3 * block, count -= 3 * block) {
        std::uint64_t second = 0;
        std::uint64_t third = 0;
        for (std::size_t at = 0; at < block; at += kWord) {
            state = _mm_crc32_u64(state, word_at(bytes + at));
            second = _mm_crc32_u64(second, word_at(bytes + block + at));
            third = _mm_crc32_u64(third, word_at(bytes + 2 * block + at));
        }
        state = apply(kAdvance<Doublings>, static_cast<std::uint32_t>(state)) ^ second;
        state = apply(kAdvance<Doublings>, static_cast<std::uint32_t>(state)) ^ third;
    }
    return state;
}

__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t before,
                                                               const std::byte* bytes,
                                                               std::size_t count) {
    std::uint64_t state = before;
    state = by_blocks<12>(state, bytes, count);
    state = by_blocks<8>(state, bytes, count);
    for (; count >= kWord; bytes += kWord, count -= kWord) {
        state = _mm_crc32_u64(state, word_at(bytes));
    }
    auto narrow = static_cast<std::uint32_t>(state);
    for (; count > 0; ++bytes, --count) {
        narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*bytes));
    }
    return narrow;
}

/// x^n modulo the polynomial, bits reversed, as a factor of a carry-less product of reversed bits.
constexpr std::uint64_t power(int n) {
    std::uint32_t value = 0x8000'0000;
    for (int i = 0; i < n; ++i) {
        value = value >> 1 ^ ((value & 1) != 0 ? kPolynomial : 0);
    }
    return std::uint64_t{value} << 1;
}

/// Folds 256 bytes into the next 256 while at least 256 are left: Gopal and others, "Fast CRC
/// computation for generic polynomials using PCLMULQDQ instruction", Intel 2009. The last 256 bytes
/// then have the checksum of all bytes.
__attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint32_t by_folding(
    std::uint32_t before, const std::byte* bytes, std::size_t count) {
    constexpr std::size_t step = 256;
    constexpr int distance = 8 * static_cast<int>(step);
    if (count < 2 * step) {
        return by_instruction(before, bytes, count);
    }
    const __m512i factors = _mm512_set4_epi64(power(distance - 32), power(distance + 32),
                                              power(distance - 32), power(distance + 32));
    __m512i sums[4];  // NOLINT: std::array loses its alignment
    for (std::size_t i = 0; i < 4; ++i) {
        sums[i] = _mm512_loadu_si512(bytes + 64 * i);
    }
    const __m128i first = _mm_cvtsi32_si128(static_cast<int>(before));
    sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(first));
    for (bytes += step, count -= step; count >= step; bytes += step, count -= step) {
        for (std::size_t i = 0; i < 4; ++i) {
            const __m512i low = _mm512_clmulepi64_epi128(sums[i], factors, 0x00);
            const __m512i high = _mm512_clmulepi64_epi128(sums[i], factors, 0x11);
            const __m512i next = _mm512_loadu_si512(bytes + 64 * i);
            sums[i] = _mm512_ternarylogic_epi64(low, high, next, 0x96);
        }
    }
    std::array<std::byte, step> remains;
    std::memcpy(remains.data(), sums, step);
    return by_instruction(by_instruction(0, remains.data(), step), bytes, count);
}

#endif

constexpr Crc32cMethod kMethods[] = {
#if defined(__x86_64__)
    {"folding", by_folding},
    {"instruction", by_instruction},
#endif
    {"tables", by_tables}};

}  // namespace

std::span<const Crc32cMethod> crc32c_methods() {
#if defined(__x86_64__)
    const bool folds =
        __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
    const std::size_t first = folds ? 0U : __builtin_cpu_supports("sse4.2") != 0 ? 1U : 2U;
    return std::span(kMethods).subspan(first);
#else
    return kMethods;
#endif
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
    static const Crc32cMethod method = crc32c_methods().front();
    return method(bytes, before);
}

}  // namespace daqloom::base

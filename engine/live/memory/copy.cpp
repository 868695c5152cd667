#include "live/memory/copy.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace daqloom::live {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kCopiedLine = 64;

/// Bytes before the first whole cache line of the target. They and the bytes after the last whole
/// line are copied with ordinary stores.
std::size_t before_line(const std::byte* to, std::size_t bytes) {
    return std::min(bytes, -reinterpret_cast<std::uintptr_t>(to) % kCopiedLine);
}

/// Copies with `Lines`, a function that copies whole cache lines to an aligned target.
template <auto Lines>
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
    const std::size_t head = before_line(to, bytes);
    const std::size_t body = (bytes - head) / kCopiedLine * kCopiedLine;
    std::memcpy(to, from, head);
    Lines(to + head, from + head, body);
    std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

void lines_sse2(std::byte* to, const std::byte* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCopiedLine) {
        const auto* source = reinterpret_cast<const __m128i*>(from + at);
        auto* target = reinterpret_cast<__m128i*>(to + at);
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
}

__attribute__((target("avx2"))) void lines_avx2(std::byte* to, const std::byte* from,
                                                std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCopiedLine) {
        const auto* source = reinterpret_cast<const __m256i*>(from + at);
        auto* target = reinterpret_cast<__m256i*>(to + at);
        const __m256i a = _mm256_loadu_si256(source);
        const __m256i b = _mm256_loadu_si256(source + 1);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
    }
}

__attribute__((target("avx512f"))) void lines_avx512(std::byte* to, const std::byte* from,
                                                     std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += kCopiedLine) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at),
                            _mm512_loadu_si512(reinterpret_cast<const __m512i*>(from + at)));
    }
}

constexpr std::array<StreamingCopy, 3> kCopies = {{{"AVX-512", stream<lines_avx512>},
                                                   {"AVX2", stream<lines_avx2>},
                                                   {"SSE2", stream<lines_sse2>}}};

}  // namespace

std::span<const StreamingCopy> streaming_copies() {
    static const std::size_t first = __builtin_cpu_supports("avx512f") != 0 ? 0U
                                     : __builtin_cpu_supports("avx2") != 0  ? 1U
                                                                            : 2U;
    return std::span(kCopies).subspan(first);
}

void fence_copies() { _mm_sfence(); }

#else

std::span<const StreamingCopy> streaming_copies() { return {}; }

/// No fence is needed: these copies are ordinary stores, which the publishing store orders.
void fence_copies() {}

#endif

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    const auto streaming = streaming_copies();
    if (bytes < kStreamedFrom || streaming.empty()) {
        if (bytes != 0) {
            std::memcpy(to, from, bytes);
        }
        return;
    }
    streaming.front().copy(to, from, bytes);
}

}  // namespace daqloom::live

// Copies into memory that somebody else will read later, past the caches where that is faster.
#pragma once

#include <cstddef>
#include <span>

namespace daqloom::live {

/// From here on a copy goes past the caches. An ordinary store first fetches the line that it
/// overwrites: 6.2 against 8.4 GB/s for large pieces on one core of a Xeon of 2023. Below, the
/// fence costs more than it saves (copy_bench.cpp).
inline constexpr std::size_t kStreamedFrom = 2048;

/// Like memcpy; any alignment, no overlap. Others may be told of the bytes only after
/// `fence_copies`.
void copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// All that was copied before is seen by whoever sees a later store.
void fence_copies();

/// The ways to copy past the caches that this processor has, the best first; empty on others than
/// x86-64. For tests and benchmarks.
struct StreamingCopy {
    const char* name;
    void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes);
};
[[nodiscard]] std::span<const StreamingCopy> streaming_copies();

}  // namespace daqloom::live

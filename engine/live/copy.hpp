// Copies into memory that somebody else will read later, past the caches where that is faster.
#pragma once

#include <cstddef>
#include <span>

namespace daqloom::live {

/// From here on a copy goes past the caches: an ordinary store first fetches the line that it
/// overwrites, which costs a third of the memory's bandwidth. Below, the fence costs more.
inline constexpr std::size_t kStreamedFrom = 4096;

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

// Copies into memory that another process reads later, with non-temporal stores where these are
// faster.
#pragma once

#include <cstddef>
#include <span>

namespace daqloom::live {

/// The size (bytes) from which a copy uses non-temporal stores. Large copies reach 8.4 GB/s with
/// them, and 6.2 GB/s with ordinary stores, which first fetch each cache line (one core of a Xeon
/// of 2023). Small copies lose more time in `fence_copies` than they save (copy_bench.cpp).
inline constexpr std::size_t kStreamedFrom = 2048;

/// Copies like memcpy, for any alignment. Call `fence_copies` before the bytes are announced to
/// other threads or processes.
void copy(std::byte* to, const std::byte* from, std::size_t bytes);

/// Orders all earlier copies before later stores, as seen by all other threads.
void fence_copies();

/// The non-temporal copy functions of this processor, the best first; empty on processors other
/// than x86-64. For tests and benchmarks.
struct StreamingCopy {
    const char* name;
    void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes);
};
[[nodiscard]] std::span<const StreamingCopy> streaming_copies();

}  // namespace daqloom::live

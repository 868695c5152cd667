// Copies in pieces of one size between two areas far larger than the caches: non-temporal stores
// against memcpy, by one thread, and by two threads with their own areas.
//
// `copy` is the transport's function. Bytes per second count each byte copied once.
#include <benchmark/benchmark.h>

#include <cstring>

#include "live/memory/copy.hpp"
#include "live/memory/shared_memory.hpp"

namespace daqloom::live {
namespace {

constexpr std::size_t kCopyArea = std::size_t{512} << 20;

using Copy = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

void by_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) {
    std::memcpy(to, from, bytes);
}

void copy_pieces(benchmark::State& state, Copy copy_piece) {
    const auto piece = static_cast<std::size_t>(state.range(0));
    const auto source = SharedMemory::create("bench-source", kCopyArea);
    const auto target = SharedMemory::create("bench-target", kCopyArea);
    if (!source || !target) {
        state.SkipWithError("no memory");
        return;
    }
    std::memset(source->bytes().data(), 1, kCopyArea);
    std::memset(target->bytes().data(), 2, kCopyArea);
    std::size_t at = 0;
    for (auto _ : state) {
        copy_piece(target->bytes().data() + at, source->bytes().data() + at, piece);
        fence_copies();
        at = at + 2 * piece <= kCopyArea ? at + piece : 0;
    }
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

const bool copies_registered = [] {
    const auto add = [](const char* name, Copy copy_piece) {
        benchmark::RegisterBenchmark(name, copy_pieces, copy_piece)
            ->RangeMultiplier(2)
            ->Range(1 << 10, 4 << 20)
            ->ThreadRange(1, 2)
            ->MinWarmUpTime(0.2)
            ->UseRealTime();
    };
    add("memcpy", by_memcpy);
    for (const auto& way : streaming_copies()) {
        add(way.name, way.copy);
    }
    add("copy", copy);
    return true;
}();

}  // namespace
}  // namespace daqloom::live

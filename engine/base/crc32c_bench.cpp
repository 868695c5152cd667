// The checksum of a piece of a write, by the processor's instruction and by tables.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/crc32c.hpp"

namespace daqloom::base {
namespace {

template <auto Checksum>
void checksum(benchmark::State& state) {
    const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{1});
    for (auto _ : state) {
        benchmark::DoNotOptimize(Checksum(bytes, 0));
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK(checksum<crc32c>)->Arg(40)->Arg(1 << 10)->Arg(256 << 10);
BENCHMARK(checksum<crc32c_by_tables>)->Arg(40)->Arg(1 << 10)->Arg(256 << 10);

}  // namespace
}  // namespace daqloom::base

// Speed of CRC32C by each method that the processor supports, for blocks of three sizes.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/crc32c.hpp"

namespace daqloom::base {
namespace {

int register_all() {
    for (const Crc32cMethod& method : crc32c_methods()) {
        const auto run = [method](benchmark::State& state) {
            const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)));
            for (auto _ : state) {
                benchmark::DoNotOptimize(method(bytes));
            }
            state.SetBytesProcessed(state.iterations() * state.range(0));
        };
        benchmark::RegisterBenchmark(method.name, run)->Arg(40)->Arg(1 << 10)->Arg(256 << 10);
    }
    return 0;
}

[[maybe_unused]] const int registered = register_all();

}  // namespace
}  // namespace daqloom::base

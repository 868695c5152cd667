// Rates of generating and checking data: upper limits for a run that checks every event.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/data/mep_check.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::protocol {
namespace {

/// Bytes per second for fragments of one size, with all data in the first-level cache.
void BM_FillPattern(benchmark::State& state) {
    std::vector<std::uint8_t> payload(static_cast<std::size_t>(state.range(0)));
    std::uint64_t event = 0;
    for (auto _ : state) {
        fill_pattern(1, event++, payload);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_FillPattern)->Arg(133)->Arg(1'000)->Arg(10'000);

void BM_CheckPattern(benchmark::State& state) {
    std::vector<std::uint8_t> payload(static_cast<std::size_t>(state.range(0)));
    fill_pattern(1, 2, payload);
    for (auto _ : state) {
        benchmark::DoNotOptimize(check_pattern(1, 2, payload));
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_CheckPattern)->Arg(133)->Arg(1'000)->Arg(10'000);

MfpGenerator generator(const benchmark::State& state) {
    const auto sizes = std::make_shared<PatternSizes>(FragmentSizes::poisson, state.range(0), 1);
    return *MfpGenerator::make(
        {.source_id = 1, .packing = static_cast<std::uint32_t>(state.range(1)), .sizes = sizes});
}

/// Bytes per second of whole MFPs.
void BM_GenerateMfp(benchmark::State& state) {
    const MfpGenerator stream = generator(state);
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(stream.largest()));
    std::int64_t bytes = 0;
    std::uint64_t event = 0;
    for (auto _ : state) {
        bytes += *stream.generate(event, memory);
        event += stream.packing();
    }
    state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_GenerateMfp)->Args({133, 30'000})->Args({133, 1'000})->Args({1'000, 1'000});

void BM_CheckMfp(benchmark::State& state) {
    const MfpGenerator stream = generator(state);
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(stream.largest()));
    memory.resize(static_cast<std::size_t>(*stream.generate(7, memory)));
    for (auto _ : state) {
        if (check_mfp(stream, 7, memory).fault != DataFault::none) {
            state.SkipWithError("damaged");
        }
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(memory.size()));
}
BENCHMARK(BM_CheckMfp)->Args({133, 30'000})->Args({133, 1'000})->Args({1'000, 1'000});

}  // namespace
}  // namespace daqloom::protocol

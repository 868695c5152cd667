// 321 nodes on a ring for a second of virtual time. Transfers per CPU second.
#include <benchmark/benchmark.h>

#include "systems/ring/node_ring.hpp"

namespace daqloom::systems {
namespace {

/// Argument: nodes that a builder serves at a time, 0: all.
void play_ring(benchmark::State& state) {
    using Kind = base::DelayDistribution::Kind;
    NodeRingConfig config;
    config.work.assign(321, {Kind::fixed, base::microseconds(576), {}});
    config.delays = {{Kind::exponential, base::microseconds(20), {}}};
    config.writers = static_cast<std::uint32_t>(state.range(0));
    config.duration = base::seconds(1);
    std::uint64_t transfers = 0;
    for (auto _ : state) {
        transfers += play_node_ring(config)->transfers;
    }
    state.counters["transfers"] =
        benchmark::Counter(static_cast<double>(transfers), benchmark::Counter::kIsRate);
}
BENCHMARK(play_ring)->Arg(0)->Arg(1)->Arg(2);

}  // namespace
}  // namespace daqloom::systems

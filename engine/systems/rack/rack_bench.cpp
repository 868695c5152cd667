// Packet-hops per CPU second of the whole simulator, on the traffic of the ATLAS laboratory.
//
// A hop is one frame delivered over one link; acknowledgements are included, and counted separately
// too. The largest number of pending events is the size of the problem for the event queue. One
// iteration simulates 0.08 virtual seconds of a rack that has run for 0.02 before, so that it is
// loaded. Rates are per CPU second.
#include <benchmark/benchmark.h>

#include "systems/rack/rack_system_test.hpp"

namespace daqloom::systems {
namespace {

/// The laboratory at 60 % of the rate that 25 Gb/s to each builder unit can carry.
RackConfig atlas(std::uint32_t readouts, base::Bytes mss) {
    RackConfig config = atlas_lab();
    config.readout_units = readouts;
    config.tcp.mss = mss;
    config.warmup = base::milliseconds(20);
    config.duration = base::milliseconds(100);
    return config;
}

/// Arguments: readout units and MTU.
void BM_Rack(benchmark::State& state) {
    const RackConfig config =
        atlas(static_cast<std::uint32_t>(state.range(0)), state.range(1) - 52);
    std::uint64_t hops = 0;
    std::uint64_t ack_hops = 0;
    std::uint64_t pending_peak = 0;
    for (auto _ : state) {
        state.PauseTiming();
        auto rack = *Rack::make(config);
        rack->run(config.warmup);
        const std::uint64_t hops_before = rack->network().packet_hops();
        const std::uint64_t acks_before = rack->network().ack_hops();
        state.ResumeTiming();
        rack->run(config.duration);
        state.PauseTiming();
        hops += rack->network().packet_hops() - hops_before;
        ack_hops += rack->network().ack_hops() - acks_before;
        pending_peak = rack->report().total_pending_peak;
        rack.reset();
        state.ResumeTiming();
    }
    const auto rate = [](std::uint64_t count) {
        return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
    };
    state.counters["packet_hops"] = rate(hops);
    state.counters["ack_hops"] = rate(ack_hops);
    state.counters["pending_peak"] = static_cast<double>(pending_peak);
    state.counters["connections"] = config.readout_units * config.builder_units;
}
BENCHMARK(BM_Rack)
    ->ArgNames({"readouts", "mtu"})
    ->Args({48, 1500})
    ->Args({48, 9000})
    ->Args({600, 1500})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::systems

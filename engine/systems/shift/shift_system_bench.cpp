// The event builder on a two-level fat tree of 324 nodes: readout and builder units, sizes, grants,
// writes and barriers, over InfiniBand and over Ethernet. Packet hops per CPU second.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "base/units.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {
namespace {

ShiftSystemConfig event_builder(protocol::ShiftBarrier barrier, base::Bytes mfp) {
    ShiftSystemConfig config;
    fabric_of(config) = fat_tree(18, 18, 18);
    config.slots = all_hosts(fabric_of(config));
    config.barrier = barrier;
    config.mfp_bytes.assign(fabric_of(config).hosts, mfp);
    config.fragment_sizes = protocol::FragmentSizes::poisson;
    config.message_cost = base::nanoseconds(200);
    config.polling_delay = base::nanoseconds(100);
    return config;
}

/// Runs a system until its units have made `steps` steps on average.
void build_events(benchmark::State& state, const ShiftSystemConfig& config, std::int64_t steps) {
    const std::uint64_t all_steps = static_cast<std::uint64_t>(steps) * config.slots.size();
    std::uint64_t hops = 0;
    std::uint64_t events = 0;
    for (auto _ : state) {
        auto system = *ShiftSystem::make(config);
        while (!system->stalled() && system->report().steps < all_steps) {
            system->run(system->now() + base::microseconds(100));
        }
        if (system->stalled() || !system->check_conservation()) {
            state.SkipWithError("the event builder stalled, or the books are wrong");
        }
        hops += system->transport().report().packet_hops;
        events += system->sim_events();
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    state.counters["packet_hops"] =
        benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
    state.counters["events_per_hop"] = static_cast<double>(events) / static_cast<double>(hops);
    state.counters["peak_rss_bytes"] = static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Arguments: barrier (protocol::ShiftBarrier; 0: none, 2: tournament), bytes of an MFP, steps.
/// A round has 324 steps; in front of the first one the sizes of two rounds are exchanged.
void event_building(benchmark::State& state) {
    build_events(state,
                 event_builder(static_cast<protocol::ShiftBarrier>(state.range(0)), state.range(1)),
                 state.range(2));
}

/// Event building over RoCEv2 on Ethernet, with unlimited switch buffers. Arguments: as above.
void event_building_on_ethernet(benchmark::State& state) {
    ShiftSystemConfig config =
        event_builder(static_cast<protocol::ShiftBarrier>(state.range(0)), state.range(1));
    ethernet::NetworkConfig network;
    static_cast<network::Graph&>(network) = fabric_of(config);
    network.switches.resize(network.switch_ports.size());
    config.network = network;
    build_events(state, config, state.range(2));
}
BENCHMARK(event_building_on_ethernet)
    ->ArgNames({"barrier", "mfp", "steps"})
    ->Args({2, 256 * 1024, 100})
    ->Unit(benchmark::kMillisecond);

BENCHMARK(event_building)
    ->ArgNames({"barrier", "mfp", "steps"})
    ->Args({0, 256 * 1024, 100})
    ->Args({2, 256 * 1024, 100})
    ->Args({2, 1'000'000, 324})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::systems

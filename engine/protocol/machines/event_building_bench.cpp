// Cost of event building per fragment, and of arrivals per event, without a network.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "protocol/machines/pull_builder.hpp"
#include "protocol/schedule/arrivals.hpp"

namespace daqloom::protocol {
namespace {

struct Requests {
    std::vector<std::pair<EventId, ReadoutIndex>> pending;
    std::vector<EventId> finished;
    void request(EventId event, SlotTable::Slot /*slot*/, ReadoutIndex readout) {
        pending.emplace_back(event, readout);
    }
    void built(EventId event, SlotTable::Slot /*slot*/) { finished.push_back(event); }
    void incomplete(EventId event, SlotTable::Slot slot) { built(event, slot); }
    void done(EventId event) { benchmark::DoNotOptimize(event); }
    void last_request(ReadoutIndex /*readout*/, std::uint64_t /*requests*/) {}
};

/// Fragments per second through a builder unit with 32 events in flight.
void BM_PullBuilder(benchmark::State& state) {
    constexpr std::uint32_t concurrent = 32;
    const auto readouts = static_cast<std::uint32_t>(state.range(0));
    PullBuilder builder =
        *PullBuilder::make({.readouts = readouts, .concurrent_events = concurrent});
    Requests out;
    std::uint64_t event = 0;
    for (auto _ : state) {
        for (std::uint32_t i = 0; i < concurrent; ++i) {
            builder.on_assigned(EventId{event++}, out);
        }
        for (const auto& [id, readout] : std::exchange(out.pending, {})) {
            builder.on_fragment(id, readout, 1, out);
        }
        for (const EventId id : std::exchange(out.finished, {})) {
            builder.on_processed(id, out);
        }
    }
    state.SetItemsProcessed(state.iterations() * concurrent * readouts);
    state.counters["readouts"] = readouts;
}
BENCHMARK(BM_PullBuilder)->Arg(48)->Arg(600);

/// Arrivals per second, at 12 kHz.
void BM_Arrivals(benchmark::State& state) {
    ArrivalsConfig config{.kind = static_cast<ArrivalsConfig::Kind>(state.range(0)),
                          .rate_hz = 12e3,
                          .simple_dead_time_bx = 4,
                          .complex_dead_time = {{.triggers = 15, .window_bx = 15 * 370}}};
    Arrivals arrivals = *Arrivals::make(config, base::RandomStream(1, "arrivals"));
    for (auto _ : state) {
        benchmark::DoNotOptimize(arrivals.next());
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Arrivals)
    ->ArgName("kind")
    ->Arg(static_cast<int>(ArrivalsConfig::Kind::poisson))
    ->Arg(static_cast<int>(ArrivalsConfig::Kind::lhc));

/// The calibration of an LHC trigger, once per run.
void BM_LhcCalibration(benchmark::State& state) {
    for (auto _ : state) {
        LhcTrigger trigger({}, 4, {{.triggers = 15, .window_bx = 15 * 370}});
        benchmark::DoNotOptimize(trigger.set_mean_distance(3333));
    }
}
BENCHMARK(BM_LhcCalibration)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::protocol

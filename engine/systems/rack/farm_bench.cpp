// Pull building on a whole farm: racks of builder units behind two core routers, to which the
// readout units are cabled by turns. Packet hops per CPU second, and where memory goes.
//
// One iteration builds the farm and simulates some microseconds: connections are made on first use.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "systems/requested/pull_system.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::systems {
namespace {

using base::gigabits_per_second;
using network::End;
using network::PortNumber;

constexpr std::uint32_t kRouters = 2;

struct Farm {
    std::uint32_t readouts = 0;
    std::uint32_t racks = 0;
    std::uint32_t builders = 0;  ///< number in each rack
};

/// Hosts: readout units, then builder units rack by rack; switches: routers, then tops of racks.
ethernet::NetworkConfig network_of(const Farm& farm) {
    ethernet::NetworkConfig config;
    config.hosts = farm.readouts + farm.racks * farm.builders;
    const auto router_ports =
        static_cast<PortNumber>((farm.readouts + kRouters - 1) / kRouters + farm.racks);
    const auto tor_ports = static_cast<PortNumber>(kRouters + farm.builders);
    config.switch_ports.assign(kRouters, router_ports);
    config.switch_ports.resize(kRouters + farm.racks, tor_ports);
    config.switches.resize(kRouters + farm.racks);
    const auto end = [](std::uint32_t node, std::uint32_t port) {
        return End{NodeIndex(node), static_cast<PortNumber>(port)};
    };
    const auto cable = [&](End a, End b, base::BitRate rate) {
        config.cables.push_back({a, b, rate, base::microseconds(1)});
    };
    const auto first_port_to_racks = static_cast<std::uint32_t>(router_ports) - farm.racks + 1;
    for (std::uint32_t i = 0; i < farm.readouts; ++i) {
        cable(end(i, 1), end(config.hosts + i % kRouters, i / kRouters + 1),
              gigabits_per_second(100));
    }
    for (std::uint32_t rack = 0; rack < farm.racks; ++rack) {
        const std::uint32_t tor = config.hosts + kRouters + rack;
        for (std::uint32_t router = 0; router < kRouters; ++router) {
            cable(end(config.hosts + router, first_port_to_racks + rack), end(tor, router + 1),
                  gigabits_per_second(400));
        }
        for (std::uint32_t i = 0; i < farm.builders; ++i) {
            cable(end(tor, kRouters + i + 1), end(farm.readouts + rack * farm.builders + i, 1),
                  gigabits_per_second(25));
        }
    }
    for (std::uint32_t at = 0; at < kRouters + farm.racks; ++at) {
        for (std::uint32_t host = 0; host < config.hosts; ++host) {
            const bool is_readout = host < farm.readouts;
            const std::uint32_t rack = is_readout ? 0 : (host - farm.readouts) / farm.builders;
            const std::uint32_t place = is_readout ? 0 : (host - farm.readouts) % farm.builders;
            std::uint32_t port = 0;
            if (at < kRouters) {
                port = is_readout ? (host % kRouters == at ? host / kRouters + 1 : 0)
                                  : first_port_to_racks + rack;
            } else {
                port = is_readout              ? host % kRouters + 1
                       : rack == at - kRouters ? kRouters + place + 1
                                               : 1;
            }
            config.forwarding.push_back(static_cast<network::Route>(port));
        }
    }
    return config;
}

PullSystemConfig system_on(const Farm& farm, base::Time duration) {
    PullSystemConfig config;
    config.network = network_of(farm);
    config.transport = transport::TcpConfig{};
    for (std::uint32_t host = 0; host < farm.readouts + farm.racks * farm.builders; ++host) {
        (host < farm.readouts ? config.readouts : config.builders).emplace_back(host);
    }
    config.arrivals.rate_hz = 12e3 * farm.racks;  // 5 MB each: 480 Gb/s into each rack
    config.event_size.mean = 5'000'000;
    config.duration = duration;
    config.warmup = duration / 4;
    config.bins = 100;
    return config;
}

/// Memory of the process by a line of /proc/self/status (B).
double memory_bytes(const std::string& line) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == line) {
            double kib = 0;
            status >> kib;
            return 1024 * kib;
        }
    }
    return 0;
}

/// Arguments: readout units, racks, builder units of each, microseconds.
void farm(benchmark::State& state) {
    const Farm farm{static_cast<std::uint32_t>(state.range(0)),
                    static_cast<std::uint32_t>(state.range(1)),
                    static_cast<std::uint32_t>(state.range(2))};
    const base::Time duration = base::microseconds(state.range(3));
    std::uint64_t hops = 0;
    double connections = 0;
    double built_bytes = 0;
    for (auto _ : state) {
        state.PauseTiming();
        const double before = memory_bytes("VmRSS:");
        auto system = *PullSystem::make(system_on(farm, duration));
        built_bytes = memory_bytes("VmRSS:") - before;
        state.ResumeTiming();
        system->run(duration);
        state.PauseTiming();
        if (!system->check_conservation()) {
            state.SkipWithError("the books are wrong");
        }
        hops += system->transport().report().packet_hops;
        connections =
            static_cast<double>(dynamic_cast<const transport::TcpOverEthernet&>(system->transport())
                                    .endpoints()
                                    .size() /
                                2);
        system.reset();
        state.ResumeTiming();
    }
    state.counters["packet_hops"] =
        benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
    state.counters["connections"] = connections;
    state.counters["before_the_run_bytes"] = built_bytes;
    state.counters["peak_rss_bytes"] = memory_bytes("VmHWM:");
}
BENCHMARK(farm)
    ->ArgNames({"readouts", "racks", "builders", "us"})
    ->Args({600, 3, 32, 2'000})
    ->Args({600, 83, 32, 10'000})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::systems

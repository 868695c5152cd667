// Linear shift on a two-level fat tree of 324 hosts: packet hops and flit hops per CPU second, and
// the memory of the simulation.
//
// A hop is one packet over one wire, acknowledgements included; a flit is 64 B of a packet. The
// last case is one full round of MFPs of 1 MB, 26 million packets of data.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <vector>

#include "base/units.hpp"
#include "transport/rdma/play_test.hpp"

namespace daqloom::transport {
namespace {

/// Each host sends a message to the next host, then to the second next, …, one after the other.
struct Shift {
    Hosts& hosts;
    std::uint32_t nodes;
    base::Bytes bytes;
    base::Table<NodeIndex, std::uint32_t> phase;
    std::uint64_t received = 0;

    void start(NodeIndex host, base::Time now) {
        if (++phase[host] < nodes) {
            Message message;
            message.source = host;
            message.destination = NodeIndex((host.value() + phase[host]) % nodes);
            message.bytes = bytes;
            hosts.post(message, base::Time::zero(), now);
        }
    }
    void on_received(MessageIndex, base::Time) { ++received; }
    void on_completed(MessageIndex index, base::Time now) {
        start(hosts.message(index).source, now);
    }
    void on_failed(MessageIndex, base::Time) {}
};

/// Peak memory of the process so far, over all its runs.
double peak_rss_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Arguments: MTU, bytes of a message.
void linear_shift(benchmark::State& state) {
    const base::Bytes mtu = state.range(0);
    std::uint64_t hops = 0;
    std::uint64_t flits = 0;
    std::uint64_t events_done = 0;
    for (auto _ : state) {
        // 18 leaves and 18 spines of 36 ports, HDR.
        const FabricConfig config = fat_tree(18, 18, 18);
        HostConfig hosts;
        hosts.mtu = mtu;
        HostsPlay play(config, hosts);
        Shift shift{*play.hosts, config.hosts, state.range(1),
                    base::Table<NodeIndex, std::uint32_t>(config.hosts)};
        for (const NodeIndex host : all_hosts(config)) {
            shift.start(host, base::Time::zero());
        }
        play.run(shift);
        events_done += play.events_done;
        if (shift.received != std::uint64_t{config.hosts} * (config.hosts - 1) ||
            !play.network->check_conservation(play.now)) {
            state.SkipWithError("messages are missing, or the books are wrong");
        }
        hops += play.network->packet_hops();
        for (std::uint32_t node = 0; node < config.hosts + config.switch_ports.size(); ++node) {
            const PortNumber ports =
                node < config.hosts ? 1 : config.switch_ports[node - config.hosts];
            for (PortNumber p = 1; p <= ports; ++p) {
                flits +=
                    static_cast<std::uint64_t>(play.network->counters(end_at(node, p)).bytes) / 64;
            }
        }
    }
    const auto rate = [](std::uint64_t count) {
        return benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
    };
    state.counters["packet_hops"] = rate(hops);
    state.counters["flit_hops"] = rate(flits);
    state.counters["events_per_hop"] = static_cast<double>(events_done) / static_cast<double>(hops);
    state.counters["peak_rss_bytes"] = peak_rss_bytes();
}
BENCHMARK(linear_shift)
    ->ArgNames({"mtu", "bytes"})
    ->Args({4096, 16 * 4096})
    ->Args({256, 16 * 256})
    ->Args({4096, 1'000'000})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::transport

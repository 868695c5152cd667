// Frames of 64 or 1518 B, on one core, from a device that always has some to one that accepts all.
//
//   through_rings   headers, a rule for each destination, its paced ring
//   scanned_rings   the design of 2015: the same parsing of headers, a scan over all rings
//   forwarded       buffers from one device to the other, unread
//
// Speed: `items_per_second` are frames sent. Null devices deliver buffers unchanged from their
// pool, where each has the headers for a destination from the start.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/expected_test.hpp"
#include "softswitch/io/dpdk_eal.hpp"
#include "softswitch/io/dpdk_poll_loop.hpp"
#include "softswitch/scanned_rings_test.hpp"

namespace daqloom::softswitch::io {
namespace {

constexpr std::uint32_t kMostBuffers = 160'000;
constexpr std::uint16_t kPorts = 2;

/// Huge pages of 2 MiB that are free.
int huge_pages() {
    std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    int free = 0;
    file >> free;
    return free;
}

bool has_huge_pages = false;

Eal started_null_ports() {
    // Huge pages if the machine has reserved enough (all buffers take 420), which saves a page
    // look-up for each buffer; else ordinary pages, which any user may use.
    constexpr int needed = 550;
    has_huge_pages = huge_pages() >= needed;
    std::vector<std::string> words{"--no-pci",
                                   "--no-telemetry",
                                   "-l",
                                   "0",
                                   "--log-level",
                                   "error",
                                   "--vdev=net_null0,size=64",
                                   "--vdev=net_null1,size=64,no-rx=1",
                                   "--vdev=net_null2,size=1518",
                                   "--vdev=net_null3,size=1518,no-rx=1",
                                   "-m"};
    words.emplace_back(has_huge_pages ? std::to_string(2 * needed) : "2048");
    words.emplace_back(has_huge_pages ? "--in-memory" : "--no-huge");
    if (!has_huge_pages) {
        words.emplace_back("--no-shconf");
    }
    benchmark::AddCustomContext("huge pages", has_huge_pages ? "yes" : "no");
    return base::value_of(Eal::start(words));
}

/// Starts EAL once per process, with a pair of null devices for each frame size.
void start_null_ports() { static const Eal eal = started_null_ports(); }

Devices devices_of(std::int64_t bytes) {
    start_null_ports();
    DevicesConfig config;
    config.names = bytes == 64 ? std::vector<std::string>{"net_null0", "net_null1"}
                               : std::vector<std::string>{"net_null2", "net_null3"};
    config.buffers = kMostBuffers;
    return base::value_of(Devices::open(config));
}

void write_headers(rte_mempool* /*pool*/, void* destinations, void* object, unsigned number) {
    auto* const buffer = static_cast<rte_mbuf*>(object);
    auto* const frame = static_cast<std::uint8_t*>(buffer->buf_addr) + RTE_PKTMBUF_HEADROOM;
    constexpr std::array<std::uint8_t, 24> headers = {
        0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6};
    std::copy(headers.begin(), headers.end(), frame);
    const std::uint32_t to = number % *static_cast<std::uint32_t*>(destinations);
    frame[30] = 10;
    frame[31] = 0;
    frame[32] = static_cast<std::uint8_t>(to >> 8);
    frame[33] = static_cast<std::uint8_t>(to);
    std::fill_n(frame + 34, 4, std::uint8_t{0});
}

void through_rings(benchmark::State& state) {
    auto destinations = static_cast<std::uint32_t>(state.range(0));
    Devices devices = devices_of(state.range(2));
    rte_mempool_obj_iter(devices.buffers(), &write_headers, &destinations);
    ForwarderConfig config;
    config.output.ports = kPorts;
    config.output.rings.assign(kPorts, {});
    config.output.rings[1].port = PortIndex(1);
    // All rings together exceed the rate of the switch; each ring limits its own packets.
    const base::BitRate each{std::int64_t{60'000'000} * 8 * (state.range(2) + 24) / destinations};
    config.output.rings.resize(kPorts + destinations,
                               {.port = PortIndex(1),
                                .rate = each,
                                .packets = static_cast<std::uint32_t>(state.range(1))});
    config.output.packets = kMostBuffers;
    Forwarder forwarder = base::value_of(Forwarder::make(config));
    for (std::uint32_t to = 0; to < destinations; ++to) {
        Match match;
        match.to = IpAddress::v4(0x0a000000 + to);
        forwarder.set_rule(match, 1, {.what = Action::What::queue, .ring = RingIndex(kPorts + to)});
    }
    PollLoop loop(forwarder, devices);
    for (auto _ : state) {
        loop.turn();
    }
    state.SetLabel(has_huge_pages ? "huge pages" : "pages of 4 KiB");
    state.SetItemsProcessed(static_cast<std::int64_t>(loop.counters().sent));
    state.counters["received"] = static_cast<double>(loop.counters().received);
}

/// Minimal: rings of one size, no counters.
void scanned_rings(benchmark::State& state) {
    auto destinations = static_cast<std::uint32_t>(state.range(0));
    const auto depth = static_cast<std::uint32_t>(state.range(1));
    Devices devices = devices_of(64);
    rte_mempool_obj_iter(devices.buffers(), &write_headers, &destinations);
    ScannedRings<rte_mbuf*, std::uint64_t> rings(destinations, depth,
                                                 rte_get_tsc_hz() * destinations / 60'000'000);
    std::array<rte_mbuf*, PollLoop::kBatch> in;
    std::array<rte_mbuf*, 512> out;
    std::uint64_t sent = 0;
    for (auto _ : state) {
        const std::uint16_t count = rte_eth_rx_burst(devices.id(0), 0, in.data(), in.size());
        const std::uint64_t now = rte_rdtsc();
        for (std::uint16_t i = 0; i < count; ++i) {
            const auto* frame = rte_pktmbuf_mtod(in[i], const std::uint8_t*);
            if (!rings.put((frame[32] << 8 | frame[33]) % destinations, in[i])) {
                rte_pktmbuf_free(in[i]);
            }
        }
        const auto due = static_cast<std::uint16_t>(rings.take_due(now, out));
        sent += rte_eth_tx_burst(devices.id(1), 0, out.data(), due);
    }
    rings.drain([](rte_mbuf* buffer) { rte_pktmbuf_free(buffer); });
    state.SetLabel(has_huge_pages ? "huge pages" : "pages of 4 KiB");
    state.SetItemsProcessed(static_cast<std::int64_t>(sent));
}

void forwarded(benchmark::State& state) {
    Devices devices = devices_of(state.range(0));
    std::array<rte_mbuf*, PollLoop::kBatch> in;
    std::uint64_t sent = 0;
    for (auto _ : state) {
        const std::uint16_t count = rte_eth_rx_burst(devices.id(0), 0, in.data(), in.size());
        sent += rte_eth_tx_burst(devices.id(1), 0, in.data(), count);
    }
    state.SetLabel(has_huge_pages ? "huge pages" : "pages of 4 KiB");
    state.SetItemsProcessed(static_cast<std::int64_t>(sent));
}

BENCHMARK(through_rings)
    ->ArgNames({"rings", "depth", "bytes"})
    ->ArgsProduct({{1, 144, 4096}, {512, 14'000}, {64, 1518}});
BENCHMARK(scanned_rings)->ArgNames({"rings", "depth"})->Args({144, 512})->Args({144, 14'000});
BENCHMARK(forwarded)->ArgName("bytes")->Arg(64)->Arg(1518);

}  // namespace
}  // namespace daqloom::softswitch::io

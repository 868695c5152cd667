// Speed of the forwarder without ports, on one core, for frames of 64 B: headers, a rule and a
// paced ring for each destination, output. `items_per_second` are packets.
#include <benchmark/benchmark.h>

#include <cstring>

#include "softswitch/forwarder.hpp"

namespace daqloom::softswitch {
namespace {

constexpr std::size_t kFrames = 32;
constexpr std::size_t kFrameBuffers = 8192;
constexpr base::Time kInterval = base::nanoseconds(640);

using Frame = std::array<std::uint8_t, 64>;

struct Released {
    std::uint64_t dropped = 0;
    void drop(std::uint64_t /*handle*/) { ++dropped; }
    static void mark(std::uint64_t /*handle*/) {}
    static void pause(PortIndex /*port*/, bool /*on*/) {}
    static void share_with(std::uint32_t, const Message&) {}
    static std::uint64_t copy(std::uint64_t handle) { return handle; }
};

/// Frames with TCP over IPv4 from one of 12 hosts to one of `destinations`.
std::vector<Frame> frames_to(std::uint32_t destinations) {
    std::vector<Frame> frames(kFrameBuffers);
    for (std::uint32_t i = 0; i < kFrameBuffers; ++i) {
        Frame& frame = frames[i];
        frame = {0x02, 0, 0, 0, 0, 0, 0x02, 1, 0, 0, 0, 0, 0x08, 0x00, 0x45, 0, 0, 46};
        const std::uint32_t to = i % destinations;
        frame[3] = static_cast<std::uint8_t>(to >> 16);
        frame[4] = static_cast<std::uint8_t>(to >> 8);
        frame[5] = static_cast<std::uint8_t>(to);
        frame[11] = static_cast<std::uint8_t>(i % 12);
        frame[23] = 6;
        const std::uint32_t address = 0x0a000000 + to;
        for (std::size_t byte = 0; byte < 4; ++byte) {
            frame[30 + byte] = static_cast<std::uint8_t>(address >> (24 - 8 * byte));
        }
    }
    return frames;
}

void forwarded(benchmark::State& state) {
    const auto destinations = static_cast<std::uint32_t>(state.range(0));
    ForwarderConfig config;
    config.output.ports = 2;
    const base::BitRate each{std::int64_t{8} * 88 * std::int64_t{kFrames} * 1'000'000'000'000 /
                             kInterval.ps / destinations};
    config.output.rings.assign(2, {});
    config.output.rings[1].port = PortIndex(1);
    config.output.rings.resize(2 + destinations,
                               {.port = PortIndex(1), .rate = each, .packets = 4096});
    Forwarder forwarder = Forwarder::make(config).value();
    for (std::uint32_t to = 0; to < destinations; ++to) {
        Match match;
        match.to = IpAddress::v4(0x0a000000 + to);
        forwarder.set_rule(match, 1, {.what = Action::What::queue, .ring = RingIndex(2 + to)});
    }
    const std::vector<Frame> frames = frames_to(destinations);
    std::array<Arrival, kFrames> batch;
    std::array<std::uint64_t, kFrames> handles{};
    Released released;
    std::size_t next = 0;
    std::uint64_t sent = 0;
    base::Time now = base::milliseconds(1);
    for (auto _ : state) {
        now += kInterval;
        for (Arrival& arrival : batch) {
            const Frame& frame = frames[next++ % kFrameBuffers];
            arrival = {reinterpret_cast<std::uint64_t>(&frame), frame, 64};
        }
        forwarder.in(batch, PortIndex(), now, released);
        forwarder.advance(now);
        sent += forwarder.out(PortIndex(1), now, handles);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(sent));
    state.counters["dropped"] = static_cast<double>(released.dropped);
}

void looked_at(benchmark::State& state) {
    const std::vector<Frame> frames = frames_to(144);
    std::size_t next = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(headers_of(frames[next++ % kFrameBuffers]));
    }
    state.SetItemsProcessed(state.iterations());
}

BENCHMARK(forwarded)->ArgName("destinations")->Arg(1)->Arg(144)->Arg(4096);
BENCHMARK(looked_at);

}  // namespace
}  // namespace daqloom::softswitch

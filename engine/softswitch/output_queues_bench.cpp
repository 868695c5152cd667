// Speed of paced rings on one core for packets of 64 B: a batch in, a batch out, as in a poll loop.
//
// The references are a scan over all rings for due ones, as in the design of 2015, and no rings at
// all. `items_per_second` are packets.
#include <benchmark/benchmark.h>

#include "softswitch/output_queues.hpp"
#include "softswitch/scanned_rings_test.hpp"

namespace daqloom::softswitch {
namespace {

constexpr std::size_t kBatch = 32;
constexpr std::size_t kBuffers = 1 << 16;  ///< handles in circulation, of a cache line each

/// A replacement for a DPDK buffer: the switch reads and writes one cache line of each buffer.
struct alignas(64) Buffer {
    std::uint64_t destination = 0;
    std::uint64_t passed = 0;
};

class Traffic {
  public:
    Traffic(std::uint32_t rings, std::uint32_t bytes)
        : buffers_(kBuffers), rings_(rings), bytes_(bytes) {
        for (std::size_t i = 0; i < kBuffers; ++i) {
            buffers_[i].destination = i % rings;
        }
    }
    void receive(std::array<Packet, kBatch>& batch) {
        for (Packet& packet : batch) {
            Buffer& buffer = buffers_[next_++ % kBuffers];
            packet = {reinterpret_cast<std::uint64_t>(&buffer), bytes_,
                      RingIndex(static_cast<std::uint32_t>(buffer.destination))};
        }
    }
    static void send(std::uint64_t handle) { ++reinterpret_cast<Buffer*>(handle)->passed; }

  private:
    std::vector<Buffer> buffers_;
    std::uint32_t rings_;
    std::uint32_t bytes_;
    std::size_t next_ = 0;
};

/// The time in which all rings together send a batch, at their paces.
constexpr base::Time kTurn = base::nanoseconds(640);

OutputConfig config_of(std::uint32_t rings, std::uint32_t depth, std::uint32_t bytes) {
    OutputConfig config;
    const auto bits = static_cast<std::int64_t>(8 * (bytes + 24)) * std::int64_t{kBatch};
    const base::BitRate each{bits * 1'000'000'000'000 / kTurn.ps / rings};
    config.rings.assign(rings, {.rate = each, .packets = depth});
    return config;
}

void paced_rings(benchmark::State& state) {
    const auto rings = static_cast<std::uint32_t>(state.range(0));
    const auto depth = static_cast<std::uint32_t>(state.range(1));
    const auto bytes = static_cast<std::uint32_t>(state.range(2));
    OutputQueues queues(config_of(rings, depth, bytes));
    Traffic traffic(rings, bytes);
    std::array<Packet, kBatch> batch;
    std::array<std::uint64_t, kBatch> handles{};
    base::Time now = base::milliseconds(1);
    struct Drops {
        void drop(std::uint64_t) { ++count; }
        void mark(std::uint64_t) {}
        std::uint64_t count = 0;
    } drops;
    for (std::uint64_t filled = 0; filled < std::uint64_t{rings} * depth / 2; filled += kBatch) {
        traffic.receive(batch);
        queues.in(batch, now, drops);
    }
    std::uint64_t sent = 0;
    for (auto _ : state) {
        now += kTurn;
        traffic.receive(batch);
        queues.in(batch, now, drops);
        queues.advance(now);
        const std::size_t count = queues.out(PortIndex(), now, handles);
        for (std::size_t i = 0; i < count; ++i) {
            Traffic::send(handles[i]);
        }
        sent += count;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(sent));
    state.counters["dropped"] = static_cast<double>(drops.count);
}

/// Checks each ring in turn.
void scanned_rings(benchmark::State& state) {
    const auto rings = static_cast<std::uint32_t>(state.range(0));
    const auto depth = static_cast<std::uint32_t>(state.range(1));
    Traffic traffic(rings, 64);
    std::array<Packet, kBatch> batch;
    std::array<std::uint64_t, kBatch> handles{};
    base::Time now = base::milliseconds(1);
    const base::Time gap{kTurn.ps * rings / static_cast<std::int64_t>(kBatch)};
    ScannedRings<std::uint64_t, base::Time> all(rings, depth, gap);
    const auto enqueue = [&] {
        traffic.receive(batch);
        for (const Packet& packet : batch) {
            all.put(packet.ring.value(), packet.handle);
        }
    };
    for (std::uint64_t filled = 0; filled < std::uint64_t{rings} * depth / 2; filled += kBatch) {
        enqueue();
    }
    std::uint64_t sent = 0;
    for (auto _ : state) {
        now += kTurn;
        enqueue();
        const std::size_t count = all.take_due(now, handles);
        for (std::size_t i = 0; i < count; ++i) {
            Traffic::send(handles[i]);
        }
        sent += count;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(sent));
}

void no_rings(benchmark::State& state) {
    Traffic traffic(144, 64);
    std::array<Packet, kBatch> batch;
    for (auto _ : state) {
        traffic.receive(batch);
        benchmark::DoNotOptimize(batch.data());
        for (const Packet& packet : batch) {
            Traffic::send(packet.handle);
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}

BENCHMARK(paced_rings)
    ->ArgNames({"rings", "depth", "bytes"})
    ->ArgsProduct({{1, 144, 4096}, {512, 14'000}, {64, 1518}});
BENCHMARK(scanned_rings)->ArgNames({"rings", "depth"})->Args({144, 512})->Args({144, 14'000});
BENCHMARK(no_rings);

}  // namespace
}  // namespace daqloom::softswitch

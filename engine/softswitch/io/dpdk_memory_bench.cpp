// Memory traffic per forwarded byte, measured without hardware counters: by the memory bandwidth
// that is left for copies on other cores.
//
//   one core   turns of the switch, 32 frames each      all others   copies of 64 MiB, timed
//
//   short ring   frames leave at once, from the caches
//   long ring    65 536 frames, 100 MB: each frame goes to memory and comes back
//
// Null devices copy each frame in and out, as a network card does. Both rings forward at the same
// rate, so that all other shared resources are loaded equally, and the copies lose the bandwidth
// that frames take. The result is a lower bound if the copies do not saturate the memory, as copies
// on a single core do not.
#include <benchmark/benchmark.h>
#include <rte_cycles.h>
#include <rte_lcore.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/expected_test.hpp"
#include "softswitch/io/dpdk_eal.hpp"
#include "softswitch/io/dpdk_poll_loop.hpp"

namespace daqloom::softswitch::io {
namespace {

constexpr std::int64_t kFrameBytes = 1514;  ///< without check sequence
constexpr std::size_t kCopied = std::size_t{64} << 20;

Eal started() {
    Eal eal = base::value_of(Eal::start(std::vector<std::string>{
        "--no-huge", "--no-shconf", "--no-pci", "-m", "1024", "--no-telemetry", "-l", "0",
        "--log-level", "error", "--vdev=net_null0,size=1514,copy=1",
        "--vdev=net_null1,size=1514,copy=1", "--vdev=net_null2,size=1514,copy=1",
        "--vdev=net_null3,size=1514,copy=1"}));
    return eal;
}

/// EAL binds the thread that starts it to one core.
void start_eal() { static const Eal eal = std::async(std::launch::async, started).get(); }

/// The path of frames from one device to another, through a ring in which `waiting` frames wait.
class Way {
  public:
    Way(std::vector<std::string> names, std::uint32_t waiting)
        : devices_(devices_of(std::move(names), waiting)),
          forwarder_(forwarder_of(waiting)),
          loop_(forwarder_, devices_) {
        OutputQueues& queues = forwarder_.queues();
        queues.set_rate(kRing, kLeastPace);
        while (queues.held_packets(kRing) < waiting) {
            loop_.turn();
        }
        queues.set_rate(kRing, {});
        while (loop_.counters().sent < 2 * PollLoop::kBatch) {  // until frames leave at that pace
            loop_.turn();
        }
    }

    void turn() { loop_.turn(); }
    [[nodiscard]] std::uint64_t forwarded() const { return loop_.counters().sent; }

  private:
    static constexpr RingIndex kRing{1};

    static Devices devices_of(std::vector<std::string> names, std::uint32_t waiting) {
        DevicesConfig config;
        config.names = std::move(names);
        config.buffers = waiting + 8'192;
        return base::value_of(Devices::open(config));
    }
    static Forwarder forwarder_of(std::uint32_t waiting) {
        ForwarderConfig config;
        config.output.ports = 2;
        config.output.rings.assign(2, {});
        // A turn receives a batch before it sends one.
        config.output.rings[kRing.value()] = {
            .port = PortIndex(1),
            .packets = waiting + static_cast<std::uint32_t>(PollLoop::kBatch)};
        Forwarder made = base::value_of(Forwarder::make(config));
        // Null devices deliver frames of zeros, even devices that should only accept frames.
        made.set_rule({.ingress = 0}, 1, {.what = Action::What::queue, .ring = kRing});
        made.set_rule({.ingress = 1}, 1, {.what = Action::What::drop});
        return made;
    }

    Devices devices_;
    Forwarder forwarder_;
    PollLoop loop_;
};

/// Runs turns of one of the paths at a rate, on another core.
class Turning {
  public:
    Turning(std::array<Way*, 2> ways, double turns_per_second)
        : between_(
              static_cast<std::uint64_t>(static_cast<double>(rte_get_tsc_hz()) / turns_per_second)),
          thread_([this, ways] {
              rte_thread_register();
              for (std::uint64_t next = rte_rdtsc(); !stops_.load(std::memory_order_relaxed);) {
                  if (rte_rdtsc() >= next) {
                      next += between_;
                      ways[which_.load(std::memory_order_relaxed)]->turn();
                  }
              }
              rte_thread_unregister();
          }) {}
    ~Turning() {
        stops_.store(true, std::memory_order_relaxed);
        thread_.join();
    }
    Turning(const Turning&) = delete;
    Turning& operator=(const Turning&) = delete;

    void use(std::size_t way) { which_.store(way, std::memory_order_relaxed); }

  private:
    std::uint64_t between_;
    std::atomic<std::size_t> which_ = 0;
    std::atomic<bool> stops_ = false;
    std::thread thread_;
};

/// Copies on all cores but one.
class Copies {
  public:
    /// Copies for `cycles` clock cycles; returns the number of bytes.
    double run(std::uint64_t cycles) {
        std::vector<std::future<double>> copied;
        for (std::size_t core = 0; core < from_.size(); ++core) {
            copied.push_back(
                std::async(std::launch::async, [this, core, cycles] { return run(core, cycles); }));
        }
        double bytes = 0;
        for (std::future<double>& each : copied) {
            bytes += each.get();
        }
        return bytes;
    }

  private:
    using Block = std::vector<char>;

    static std::size_t cores() {
        return std::max(2U, std::thread::hardware_concurrency()) - std::size_t{1};
    }
    double run(std::size_t core, std::uint64_t cycles) {
        double bytes = 0;
        for (const std::uint64_t begin = rte_rdtsc(); rte_rdtsc() - begin < cycles;) {
            std::memcpy(to_[core].data(), from_[core].data(), kCopied);
            benchmark::DoNotOptimize(to_[core].data());
            bytes += static_cast<double>(kCopied);
        }
        return bytes;
    }

    std::vector<Block> from_{cores(), Block(kCopied, 1)};
    std::vector<Block> to_{cores(), Block(kCopied, 2)};
};

void beside_copies(benchmark::State& state) {
    start_eal();
    Way short_ring({"net_null0", "net_null1"}, PollLoop::kBatch);
    Way long_ring({"net_null2", "net_null3"}, 65'536);
    const std::array<Way*, 2> ways{&short_ring, &long_ring};
    Copies copies;
    std::array<double, 2> copied{};
    std::array<double, 2> seconds{};
    std::array<double, 2> forwarded{};
    const double hz = static_cast<double>(rte_get_tsc_hz());
    {
        const double turns_per_second =
            1'000.0 * static_cast<double>(state.range(0)) / PollLoop::kBatch;
        Turning turning(ways, turns_per_second);
        for (auto _ : state) {
            for (std::size_t way = 0; way < 2; ++way) {
                turning.use(way);
                copies.run(static_cast<std::uint64_t>(hz / 100));  // until it is steady
                const std::uint64_t sent = ways[way]->forwarded();
                const std::uint64_t begin = rte_rdtsc();
                copied[way] += copies.run(static_cast<std::uint64_t>(hz / 5));
                seconds[way] += static_cast<double>(rte_rdtsc() - begin) / hz;
                forwarded[way] += static_cast<double>(kFrameBytes) *
                                  static_cast<double>(ways[way]->forwarded() - sent);
            }
        }
    }
    const double lost = copied[0] / seconds[0] - copied[1] / seconds[1];
    const double rate = forwarded[1] / seconds[1];
    using benchmark::Counter;
    state.counters["copied_beside_caches"] = Counter(copied[0] / seconds[0], Counter::kDefaults);
    state.counters["copied_beside_memory"] = Counter(copied[1] / seconds[1], Counter::kDefaults);
    state.counters["forwarded_caches_bps"] = Counter(8 * forwarded[0] / seconds[0]);
    state.counters["forwarded_memory_bps"] = Counter(8 * rate);
    // A copy reads each byte and writes it without caching, so that two bytes cross the memory bus.
    state.counters["memory_bytes_per_byte"] = Counter(2 * lost / rate);
}

BENCHMARK(beside_copies)->ArgName("thousand_frames")->Arg(500)->Arg(1'000)->Iterations(10);

}  // namespace
}  // namespace daqloom::softswitch::io

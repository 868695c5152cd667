// Uniform random load on two-level fat trees, as in most flit-level simulators: packet hops per CPU
// second and the mean latency.
//
// Every host sends packets of equal size at random times (Poisson) to random other hosts, all
// equally likely; packets that find the wire busy wait at their host. The offered load is a share
// of the wire rate, credit updates not counted.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "base/random.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {
namespace {

constexpr std::uint32_t kPackets = 500'000;
constexpr base::Bytes kPacket = 256 + 26;

class UniformLoad {
  public:
    /// `edge` leaves, spines, and hosts of each leaf.
    UniformLoad(std::uint32_t edge, double load)
        : config_(fat_tree(edge, edge, edge)),
          network_(*Network::make(config_, events_)),
          mean_gap_(static_cast<double>(base::WireClock(config_.cables[0].rate)(kPacket).ps) /
                    load),
          random_(1, "uniform load") {
        for (const NodeIndex host : all_hosts(config_)) {
            schedule(host, base::Time::zero());
        }
    }

    void run() {
        while (!events_.empty()) {
            const sim::Event event = events_.pop();
            now_ = event.at;
            if (event.kind == Network::kFirstOtherEvent) {
                send(NodeIndex(event.index));
            } else {
                network_.on_event(event, *this);
            }
            if (events_.empty() || events_.next_time() != now_) {
                network_.settle(now_, *this);
            }
        }
    }

    void on_delivered(const Packet& packet, base::Time now) {
        ++delivered_;
        latency_ += now - sent_[packet.tag];
    }
    void on_departure(NodeIndex, const Packet&, base::Time) {}

    [[nodiscard]] bool complete() const {
        return delivered_ == kPackets && network_.check_conservation(now_).has_value();
    }
    [[nodiscard]] std::uint64_t hops() const { return network_.packet_hops(); }
    [[nodiscard]] double mean_latency_ns() const {
        return static_cast<double>(latency_.ps) / 1e3 / kPackets;
    }

  private:
    void schedule(NodeIndex host, base::Time now) {
        const auto gap = static_cast<std::int64_t>(random_.exponential(mean_gap_));
        events_.push({now + base::Time{gap}, Network::kFirstOtherEvent, host.value()});
    }
    void send(NodeIndex host) {
        if (sent_.size() == kPackets) {
            return;
        }
        Packet packet;
        packet.tag = static_cast<std::uint32_t>(sent_.size());
        packet.destination =
            NodeIndex((host.value() + 1 + random_.uniform_int(config_.hosts - 1)) % config_.hosts);
        packet.bytes = static_cast<std::uint16_t>(kPacket);
        sent_.push_back(now_);
        network_.inject(host, packet, now_);
        schedule(host, now_);
    }

    FabricConfig config_;
    sim::EventQueue events_;
    Network network_;
    double mean_gap_;  ///< ps
    base::RandomStream random_;
    std::vector<base::Time> sent_;
    std::uint64_t delivered_ = 0;
    base::Time latency_;
    base::Time now_;
};

/// Arguments: hosts (a square), offered load in percent.
void uniform(benchmark::State& state) {
    std::uint32_t edge = 1;
    while (edge * edge < state.range(0)) {
        ++edge;
    }
    std::uint64_t hops = 0;
    for (auto _ : state) {
        UniformLoad load(edge, static_cast<double>(state.range(1)) / 100);
        load.run();
        if (!load.complete()) {
            state.SkipWithError("packets are missing, or the books are wrong");
        }
        hops += load.hops();
        state.counters["mean_latency_ns"] = load.mean_latency_ns();
    }
    state.counters["packet_hops"] =
        benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
}
BENCHMARK(uniform)
    ->ArgNames({"hosts", "load"})
    ->ArgsProduct({{64, 324}, {10, 30, 50, 70, 90}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace daqloom::infiniband

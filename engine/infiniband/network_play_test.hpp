// For tests: sends a list of packets through a network and runs it to the last event.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "base/expected_test.hpp"
#include "infiniband/flit_reference_test.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {

inline constexpr base::Bytes kFull = 4096 + 26;  ///< a packet of the largest MTU, 65 blocks

/// Packets handed over at one time.
inline std::vector<reference::Injection> packets(std::uint32_t from, std::uint32_t to,
                                                 std::uint32_t count, base::Bytes bytes = kFull,
                                                 std::uint8_t lane = 0, base::Time at = {}) {
    return std::vector<reference::Injection>(count, {at, from, to, bytes, lane});
}

inline std::vector<reference::Injection> joined(std::vector<reference::Injection> a,
                                                const std::vector<reference::Injection>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// Simulates the injected packets and records the deliveries. At every instant it checks that
/// credits and buffered blocks add up (`check_conservation`), and at every delivery that packets
/// with the same source, destination and lane arrive in order.
class NetworkPlay {
  public:
    NetworkPlay(const FabricConfig& config, std::vector<reference::Injection> injections)
        : injections_(std::move(injections)), deliveries(injections_.size()) {
        network = std::make_unique<Network>(base::value_of(Network::make(config, events_)));
        std::vector<std::uint32_t> order(injections_.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return injections_[a].at < injections_[b].at;
        });
        rank_.resize(order.size());
        for (const std::uint32_t index : order) {
            rank_[index] = ++injected_;
            events_.push({injections_[index].at, Network::kFirstOtherEvent, index});
        }
        run();
    }

    void on_delivered(const Packet& packet, base::Time now) {
        deliveries[packet.tag] = {true, now};
        const reference::Injection& one = injections_[packet.tag];
        std::uint64_t& last = last_[{one.source, one.destination, one.lane}];
        if (rank_[packet.tag] < last) {
            throw std::runtime_error("packets of one way and lane have changed places");
        }
        last = rank_[packet.tag];
    }
    void on_departure(NodeIndex, const Packet&, base::Time) {}

  private:
    void run() {
        while (!events_.empty()) {
            const sim::Event event = events_.pop();
            end = event.at;
            if (event.kind == Network::kFirstOtherEvent) {
                inject(event.index);
            } else {
                network->on_event(event, *this);
            }
            if (events_.empty() || events_.next_time() != end) {
                network->settle(end, *this);
                base::value_of(network->check_conservation(end));
            }
        }
    }

    void inject(std::uint32_t index) {
        const reference::Injection& one = injections_[index];
        Packet packet;
        packet.tag = index;
        packet.destination = NodeIndex(one.destination);
        packet.bytes = static_cast<std::uint16_t>(one.bytes);
        packet.lane = VirtualLane(one.lane);
        network->inject(NodeIndex(one.source), packet, one.at);
    }

    sim::EventQueue events_;
    std::vector<reference::Injection> injections_;
    std::uint64_t injected_ = 0;
    std::vector<std::uint64_t> rank_;  ///< of the packets, as they are injected
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>, std::uint64_t> last_;

  public:
    std::unique_ptr<Network> network;
    std::vector<reference::Delivery> deliveries;
    base::Time end;
};

}  // namespace daqloom::infiniband

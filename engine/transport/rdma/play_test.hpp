// For tests and benchmarks: hosts of a fabric and a driver that posts their messages.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"
#include "transport/rdma/endpoints.hpp"

namespace daqloom::transport {

using namespace infiniband;
using Hosts = RdmaEndpoints<infiniband::Network>;

struct HostConfig : RdmaConfig {
    HostPathConfig path;
};

class HostsPlay {
  public:
    HostsPlay(const FabricConfig& fabric, const HostConfig& config) {
        auto made = Network::make(fabric, events);
        if (!made) {
            throw std::runtime_error(made.error().message);
        }
        network = std::make_unique<Network>(std::move(*made));
        hosts = std::make_unique<Hosts>(config, kInfinibandFraming, config.path, fabric.hosts,
                                        fabric.lanes, *network, events);
    }

    /// Runs until no event is left.
    template <class Driver>
    void run(Driver& driver) {
        hosts->settle(now, driver);
        while (!events.empty()) {
            const sim::Event event = events.pop();
            now = event.at;
            ++events_done;
            hosts->on_event(event, driver);
            if (events.empty() || events.next_time() != now) {
                hosts->settle(now, driver);
            }
        }
        network->finish(now);
    }

    sim::EventQueue events;
    std::unique_ptr<Network> network;
    std::unique_ptr<Hosts> hosts;
    base::Time now;
    std::uint64_t events_done = 0;
};

}  // namespace daqloom::transport

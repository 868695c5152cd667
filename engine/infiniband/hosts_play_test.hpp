// For tests and benchmarks: hosts of a fabric with somebody who posts their messages.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "infiniband/hosts.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {

class HostsPlay {
  public:
    HostsPlay(const FabricConfig& fabric, const HostConfig& config) {
        auto made = Network::make(fabric, events);
        if (!made) {
            throw std::runtime_error(made.error().message);
        }
        network = std::make_unique<Network>(std::move(*made));
        hosts = std::make_unique<Hosts>(config, fabric.hosts, fabric.lanes, *network, events);
    }

    /// Goes on until nothing happens any more.
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

}  // namespace daqloom::infiniband

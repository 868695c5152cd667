// For tests: hosts around one Ethernet switch, at 10 Gb/s, and a listener for their messages.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "transport/transport.hpp"

namespace daqloom::transport {

inline ethernet::NetworkConfig star(std::uint32_t hosts) {
    ethernet::NetworkConfig config;
    config.hosts = hosts;
    config.switch_ports = {static_cast<network::PortNumber>(hosts)};
    for (std::uint32_t host = 0; host < hosts; ++host) {
        const auto port = static_cast<network::PortNumber>(host + 1);
        config.cables.push_back({{network::NodeIndex(host), 1},
                                 {network::NodeIndex(hosts), port},
                                 base::gigabits_per_second(10),
                                 base::microseconds(1)});
        config.forwarding.push_back(port);
    }
    config.switches.resize(1);
    return config;
}

/// Listener that fails the test if a message fails or completes: no message requests completion.
class StrictListener : public Listener {
  public:
    void on_received(std::uint64_t /*tag*/, base::Time /*now*/) override {}
    void on_completed(std::uint64_t /*tag*/, base::Time /*now*/) override { FAIL(); }
    void on_failed(std::uint64_t /*tag*/, base::Time /*now*/) override { FAIL(); }
    void on_event(const sim::Event& /*event*/) override { FAIL(); }
};

}  // namespace daqloom::transport

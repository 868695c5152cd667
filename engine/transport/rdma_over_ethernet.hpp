// RDMA over a simulated Ethernet (RoCEv2), whose switches may drop packets.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/rdma/rdma_transport.hpp"
#include "transport/rdma/roce_network.hpp"

namespace daqloom::transport {

class RdmaOverEthernet final : public RdmaTransport<RoceNetwork> {
  public:
    static base::expected<std::unique_ptr<RdmaOverEthernet>> make(
        const ethernet::NetworkConfig& network, const RdmaConfig& config,
        const HostPathConfig& path);

    void post(const Posting& message, base::Time latency, base::Time now) override {
        if (message.is_datagram) {
            network().udp().post(message, latency, now);
        } else {
            RdmaTransport::post(message, latency, now);
        }
    }
    void run(base::Time until, Listener& listener) override {
        network().udp().listen(listener);
        RdmaTransport::run(until, listener);
    }
    void begin_counting(base::Time now, base::Time end, std::size_t bins) override {
        network().begin_counting(now, end, bins);
    }
    [[nodiscard]] Report report() override;
    [[nodiscard]] std::size_t idle_events() const override {
        return network().ethernet().is_sampling() ? 1 : 0;
    }
    [[nodiscard]] const UdpEndpoints* udp() const override { return &network().udp(); }
    [[nodiscard]] const ethernet::Network* ethernet() const override {
        return &network().ethernet();
    }

  private:
    explicit RdmaOverEthernet(const ethernet::NetworkConfig& network)
        : service_classes_(network.service_classes) {}

    /// The lane of a service level is the traffic class of its frames.
    [[nodiscard]] VirtualLane lane_of(ServiceLevel level) const override {
        return lane_by_level(service_classes_, level);
    }

    std::vector<ethernet::TrafficClass> service_classes_;  ///< by service level
};

}  // namespace daqloom::transport

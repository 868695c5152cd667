// RDMA over a simulated Ethernet (RoCEv2), whose switches may drop packets.
#pragma once

#include <cstddef>
#include <memory>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "hosts/path.hpp"
#include "transport/rdma/rdma_transport.hpp"
#include "transport/rdma/roce_network.hpp"

namespace daqloom::transport {

class RdmaOverEthernet final : public RdmaTransport<RoceNetwork> {
  public:
    static base::expected<std::unique_ptr<RdmaOverEthernet>> make(
        const ethernet::NetworkConfig& network, const RdmaConfig& config,
        const hosts::PathConfig& path);

    void begin_counting(base::Time now, base::Time end, std::size_t bins) override {
        network().begin_counting(now, end, bins);
    }
    [[nodiscard]] Report report() override;
    [[nodiscard]] const ethernet::Network* ethernet() const override {
        return &network().ethernet();
    }

  private:
    RdmaOverEthernet() = default;

    /// All traffic is of one class.
    [[nodiscard]] VirtualLane lane_of(ServiceLevel /*level*/) const override {
        return VirtualLane(0);
    }
};

}  // namespace daqloom::transport

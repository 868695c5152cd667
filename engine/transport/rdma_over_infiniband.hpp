// RDMA over a simulated InfiniBand fabric.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/network.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/rdma/rdma_transport.hpp"

namespace daqloom::transport {

class RdmaOverInfiniband final : public RdmaTransport<infiniband::Network> {
  public:
    static base::expected<std::unique_ptr<RdmaOverInfiniband>> make(
        const infiniband::FabricConfig& fabric, const RdmaConfig& config,
        const HostPathConfig& path);

    /// The fabric counts over the whole run: nothing to do.
    void begin_counting(base::Time /*now*/, base::Time /*end*/, std::size_t /*bins*/) override {}
    [[nodiscard]] Report report() override;
    [[nodiscard]] const infiniband::Network* infiniband() const override { return &network(); }

  private:
    explicit RdmaOverInfiniband(const infiniband::FabricConfig& fabric)
        : cables_(fabric.cables), lanes_(fabric.lanes), service_lanes_(fabric.service_lanes) {}

    [[nodiscard]] VirtualLane lane_of(ServiceLevel level) const override {
        return lane_by_level(service_lanes_, level);
    }

    std::vector<network::Cable> cables_;
    std::uint32_t lanes_;
    std::vector<VirtualLane> service_lanes_;
};

}  // namespace daqloom::transport

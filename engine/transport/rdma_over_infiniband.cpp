#include "transport/rdma_over_infiniband.hpp"

#include <utility>

namespace daqloom::transport {

base::expected<std::unique_ptr<RdmaOverInfiniband>> RdmaOverInfiniband::make(
    const infiniband::FabricConfig& fabric, const RdmaConfig& config, const HostPathConfig& path) {
    std::unique_ptr<RdmaOverInfiniband> made(new RdmaOverInfiniband(fabric));
    DAQLOOM_TRY(network, infiniband::Network::make(fabric, made->events()));
    made->set_up(std::make_unique<infiniband::Network>(std::move(network)), config,
                 kInfinibandFraming, path, fabric.hosts, fabric.lanes);
    return made;
}

Report RdmaOverInfiniband::report() {
    Report all;
    all.packet_hops = network().packet_hops();
    all.memory = memory();
    all.rdma = retries();
    infiniband::Report& fabric = all.infiniband.emplace();
    fabric.lanes_of_port = lanes_;
    fabric.unrouted = network().unrouted();
    for (const network::Cable& cable : cables_) {
        for (const network::End end : {cable.a, cable.b}) {
            fabric.ports.push_back({network().counters(end), end.node, end.port});
            for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
                fabric.lanes.push_back(network().counters(end, VirtualLane(lane)));
            }
        }
    }
    return all;
}

}  // namespace daqloom::transport

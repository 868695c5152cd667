#include "transport/rdma_over_ethernet.hpp"

#include <utility>

namespace daqloom::transport {

base::expected<std::unique_ptr<RdmaOverEthernet>> RdmaOverEthernet::make(
    const ethernet::NetworkConfig& network, const RdmaConfig& config, const HostPathConfig& path) {
    std::unique_ptr<RdmaOverEthernet> made(new RdmaOverEthernet(network));
    auto roce = std::make_unique<RoceNetwork>(made->events());
    const base::Bytes largest =
        config.mtu + kRoceFraming.header + kRdmaHeaderBytes + kImmediateBytes;
    DAQLOOM_CHECK(roce->build(network, largest, network.classes()));
    made->set_up(std::move(roce), config, kRoceFraming, path, network.hosts, network.classes());
    return made;
}

Report RdmaOverEthernet::report() {
    Memory all = memory();
    all.messages += network().udp().memory();
    return {.packet_hops = network().packet_hops(),
            .ack_hops = network().ethernet().ack_hops(),
            .memory = all,
            .ethernet = network().ethernet().report(now()),
            .tcp = {},
            .infiniband = {},
            .rdma = retries()};
}

}  // namespace daqloom::transport

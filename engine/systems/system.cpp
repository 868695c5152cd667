#include "systems/system.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "transport/rdma_over_ethernet.hpp"
#include "transport/rdma_over_infiniband.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::systems {

using transport::RdmaConfig;
using transport::TcpConfig;
using transport::Transport;

namespace {

template <class Made>
base::expected<std::unique_ptr<Transport>> any(base::expected<std::unique_ptr<Made>> made) {
    if (!made) {
        return tl::unexpected(made.error());
    }
    return std::unique_ptr<Transport>(std::move(*made));
}

}  // namespace

const network::Graph& graph_of(const SystemConfig& config) {
    return std::visit([](const network::Graph& graph) -> const network::Graph& { return graph; },
                      config.network);
}

bool has_levels(const SystemConfig& config) {
    return config.data_service_level > 0 || config.control_service_level > 0 ||
           std::any_of(config.flows.begin(), config.flows.end(),
                       [](const Flow& flow) { return flow.service_level > 0; });
}

base::expected<std::unique_ptr<Transport>> make_transport(const SystemConfig& config) {
    if (config.duration <= config.warmup || config.warmup < base::Time::zero()) {
        return base::failure(std::string("the run must be longer than its warm-up"));
    }
    if (config.bins < 1) {
        return base::failure(std::string("occupancy is recorded in one bin or more"));
    }
    const auto* ethernet = std::get_if<ethernet::NetworkConfig>(&config.network);
    const auto* fabric = std::get_if<infiniband::FabricConfig>(&config.network);
    const auto* tcp = std::get_if<TcpConfig>(&config.transport);
    const auto* rdma = std::get_if<RdmaConfig>(&config.transport);
    if (tcp != nullptr && ethernet != nullptr) {
        return any(transport::TcpOverEthernet::make(*ethernet, *tcp));
    }
    if (rdma != nullptr && ethernet != nullptr) {
        return any(transport::RdmaOverEthernet::make(*ethernet, *rdma, config.path));
    }
    if (rdma != nullptr && fabric != nullptr) {
        return any(transport::RdmaOverInfiniband::make(*fabric, *rdma, config.path));
    }
    return base::failure(std::string("TCP over InfiniBand is not simulated; expected RDMA"));
}

}  // namespace daqloom::systems

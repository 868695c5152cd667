// Parts of a system with RDMA over InfiniBand, for tests and benchmarks.
#pragma once

#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/network.hpp"
#include "systems/system.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma_over_infiniband.hpp"

namespace daqloom::systems {

using namespace infiniband;

inline transport::RdmaConfig& rdma_of(SystemConfig& config) {
    if (!std::holds_alternative<transport::RdmaConfig>(config.transport)) {
        config.transport.emplace<transport::RdmaConfig>();
    }
    return std::get<transport::RdmaConfig>(config.transport);
}
inline infiniband::FabricConfig& fabric_of(SystemConfig& config) {
    rdma_of(config);
    if (!std::holds_alternative<infiniband::FabricConfig>(config.network)) {
        config.network.emplace<infiniband::FabricConfig>();
    }
    return std::get<infiniband::FabricConfig>(config.network);
}
inline const infiniband::FabricConfig& fabric_of(const SystemConfig& config) {
    return std::get<infiniband::FabricConfig>(config.network);
}

template <class System>
const transport::RdmaOverInfiniband& rdma_under(const System& system) {
    return dynamic_cast<const transport::RdmaOverInfiniband&>(system.transport());
}
template <class System>
const infiniband::Network& network_under(const System& system) {
    return rdma_under(system).network();
}

}  // namespace daqloom::systems

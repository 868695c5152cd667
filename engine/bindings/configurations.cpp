// Configurations of event building, networks, transports and hosts, for Python.
#include <cstddef>
#include <vector>

#include "base/distribution.hpp"
#include "bindings/settings.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/network_config.hpp"
#include "hosts/node_change.hpp"
#include "infiniband/fabric_config.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/spiky_delay.hpp"
#include "systems/flow_traffic.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::DelayDistribution;
using base::Time;

namespace {

/// Sets a measured distribution: values with their counts, all at least 0, both sums above 0.
void set_measured(DelayDistribution& delay, const std::vector<Time>& values,
                  const std::vector<double>& counts) {
    if (values.size() != counts.size()) {
        throw nb::value_error("numbers of counts and values differ; give one count for each value");
    }
    delay.values.clear();
    delay.cumulative_weights.clear();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (counts[i] > 0) {
            delay.values.push_back(values[i]);
            delay.cumulative_weights.push_back(sum += counts[i]);
        }
    }
    if (delay.values.empty()) {
        throw nb::value_error("measured delays are empty; give a value with a count above 0");
    }
    delay.kind = DelayDistribution::Kind::measured;
}

void bind_building(nb::module_& module) {
    using namespace protocol;
    bind_config<DelayDistribution>(module, "Delay", "A random delay.")
        .def("set_measured", &set_measured, nb::arg("values_s"), nb::arg("counts"));
    bind_config<SpikyDelay>(module, "SpikyDelay", "Delay with spikes.");
    bind_config<ArrivalsConfig>(module, "Arrivals", "Arrival times of events.");
    bind_config<EventSizeConfig>(module, "EventSize", "Sizes of events.");
}

void bind_networks(nb::module_& module) {
    using network::Graph;
    bind_config<network::Rerouting>(module, "Rerouting", "Later forwarding tables.");
    bind_config<infiniband::LaneArbitration>(module, "LaneArbitration",
                                             "Tables of lane arbitration.");
    bind_config<infiniband::LinkChange>(module, "InfinibandLinkChange",
                                        "Change of an InfiniBand link during a run.");
    bind_config<infiniband::FabricConfig, Graph>(module, "InfinibandConfig",
                                                 "A fabric of InfiniBand.");
    using namespace ethernet;
    bind_config<Schedule>(module, "Schedule", "Sharing of a wire among classes.");
    bind_config<SoftwareSwitchConfig>(module, "SoftwareSwitchConfig",
                                      "Rings, pace and costs of a software switch.");
    bind_config<SwitchConfig>(module, "SwitchConfig", "Buffer and outputs of a switch.");
    bind_config<LinkChange>(module, "LinkChange", "Change of an Ethernet link during a run.");
    bind_config<NetworkConfig, Graph>(module, "EthernetConfig", "A network of Ethernet.");
}

void bind_hosts(nb::module_& module) {
    using transport::CongestionConfig, transport::RdmaConfig;
    bind_config<transport::TcpConfig, CongestionConfig>(module, "TcpConfig",
                                                        "TCP at both ends of all connections.");
    bind_config<RdmaConfig>(module, "RdmaConfig", "RDMA over reliable connections.");
    using namespace systems;
    bind_config<transport::HostPathConfig>(module, "PathConfig", "Path of bytes through a host.");
    bind_config<hosts::NodeChange>(module, "NodeChange", "Change of a node during a run.");
    bind_config<Flow>(module, "Flow", "A flow beside or without event building.")
        .attr("ANY_OTHER") = Flow::kAnyOther;
}

const Subject building(bind_building);
const Subject networks(bind_networks);
const Subject hosts_of_networks(bind_hosts);

}  // namespace

}  // namespace daqloom::bindings

// A simulated fabric and the nodes on it, for Python. Plain attributes; times in seconds (`_s`),
// rates in bits per second.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "bindings/attributes.hpp"
#include "bindings/index.hpp"
#include "bindings/report.hpp"
#include "bindings/systems.hpp"
#include "infiniband/cluster.hpp"
#include "infiniband/fabric_report.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::Time;
using namespace infiniband;

namespace {

using Entries = std::vector<std::tuple<int, int>>;

/// Pairs of (lane, weight).
template <std::vector<LaneWeight> LaneArbitration::*member>
void lane_table(nb::class_<FabricConfig>& cls, const char* name) {
    cls.def_prop_rw(
        name,
        [](const FabricConfig& self) {
            Entries entries;
            for (const LaneWeight& entry : self.arbitration.*member) {
                entries.emplace_back(entry.lane.value(), entry.weight);
            }
            return entries;
        },
        [](FabricConfig& self, const Entries& entries) {
            (self.arbitration.*member).clear();
            for (const auto& [lane, weight] : entries) {
                (self.arbitration.*member)
                    .push_back({VirtualLane(lane), static_cast<std::uint8_t>(weight)});
            }
        });
}

void bind_fabric_config(nb::module_& module) {
    auto cls = nb::class_<FabricConfig>(module, "FabricConfig");
    cls.def(nb::init<>())
        .def_rw("hosts", &FabricConfig::hosts)
        .def_rw("switch_ports", &FabricConfig::switch_ports)
        .def_rw("lanes", &FabricConfig::lanes)
        .def_rw("service_lanes", &FabricConfig::service_lanes)
        .def_rw("buffer_blocks", &FabricConfig::buffer_blocks)
        .def_rw("input_queue", &FabricConfig::input_queue)
        .def_rw("crossbar_speedup", &FabricConfig::crossbar_speedup)
        .def_rw("credit_release", &FabricConfig::credit_release)
        .def_rw("credit_update_bytes", &FabricConfig::credit_update_bytes)
        .def_prop_rw(
            "high_limit", [](const FabricConfig& self) { return self.arbitration.high_limit; },
            [](FabricConfig& self, std::uint8_t limit) { self.arbitration.high_limit = limit; })
        .def(
            "add_cable",
            [](FabricConfig& self, NodeIndex a, PortNumber at_a, NodeIndex b, PortNumber at_b,
               std::int64_t bps, double delay_s) {
                self.cables.push_back({{a, at_a}, {b, at_b}, {bps}, Time::from_seconds(delay_s)});
            },
            nb::arg("a"), nb::arg("port_a"), nb::arg("b"), nb::arg("port_b"), nb::arg("rate_bps"),
            nb::arg("delay_s"))
        .def(
            "set_forwarding",
            [](FabricConfig& self,
               nb::ndarray<const std::int16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> ports) {
                self.forwarding.assign(ports.data(), ports.data() + ports.size());
            },
            nb::arg("ports"),
            "Linear forwarding tables: output ports by (switch, host); 0: no route.");
    seconds(cls, "switch_latency_s", &FabricConfig::switch_latency);
    seconds(cls, "credit_update_interval_s", &FabricConfig::credit_update_interval);
    seconds(cls, "head_of_queue_lifetime_s", &FabricConfig::head_of_queue_lifetime);
    lane_table<&LaneArbitration::high>(cls, "high");
    lane_table<&LaneArbitration::low>(cls, "low");
}

void bind_hosts(nb::module_& module) {
    auto cls = nb::class_<HostConfig>(module, "HostConfig");
    cls.def_rw("mtu", &HostConfig::mtu)
        .def_rw("memory_passes", &HostConfig::memory_passes)
        .def_rw("acknowledge", &HostConfig::acknowledge)
        .def_rw("retry_count", &HostConfig::retry_count);
    seconds(cls, "retry_timeout_s", &HostConfig::retry_timeout);
    bits_per_second(cls, "pcie_rate_bps", &HostConfig::pcie_rate);
    bits_per_second(cls, "memory_rate_bps", &HostConfig::memory_rate);
}

void bind_cluster_config(nb::module_& module) {
    using Config = ClusterConfig;
    auto cls = nb::class_<Config>(module, "ClusterConfig");
    cls.def_rw("fabric", &Config::fabric)
        .def_rw("host", &Config::host)
        .def_rw("latency", &Config::latency)
        .def_rw("control_bytes", &Config::control_bytes)
        .def_rw("data_service_level", &Config::data_service_level)
        .def_rw("control_service_level", &Config::control_service_level)
        .def_rw("clock_drift", &Config::clock_drift)
        .def_rw("seed", &Config::seed);
    bits_per_second(cls, "local_rate_bps", &Config::local_rate);
    seconds(cls, "message_cost_s", &Config::message_cost);
    seconds(cls, "polling_delay_s", &Config::polling_delay);
    seconds(cls, "clock_offset_s", &Config::clock_offset);
    seconds(cls, "duration_s", &Config::duration);
    seconds(cls, "warmup_s", &Config::warmup);
}

void bind_fabric_report(nb::module_& module) {
    bind_report<RetryCounters>(module, "RetryCounters",
                               "Losses and retransmissions over the whole run.");
    bind_columns<PortReport>(module, "Ports",
                             "The outputs at both ends of each cable, over the whole run.");
    using Lanes = Columns<LaneCounters, 2>;
    bind_columns<LaneCounters, 2>(
        module, "Lanes", "The virtual lanes of the outputs at both ends of each cable, likewise.");
    bind_report<FabricReport>(module, "FabricReport",
                              "What every run on a fabric counts, over the whole run.")
        .def_prop_ro(
            "ports", [](const FabricReport& self) { return Columns<PortReport>{self.ports}; },
            "What each output has counted.")
        .def_prop_ro(
            "lanes",
            [](const FabricReport& self) {
                return Lanes{self.lanes, self.lanes_of_port};
            },
            "What each virtual lane of these outputs has counted.");
}

}  // namespace

void bind_fabric(nb::module_& module) {
    bind_fabric_report(module);
    bind_fabric_config(module);
    bind_hosts(module);
    bind_cluster_config(module);
}

}  // namespace daqloom::bindings

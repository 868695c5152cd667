// Nodes on a simulated network, for Python.
#include "bindings/simulation.hpp"
#include "bindings/casters.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/report.hpp"
#include "bindings/settings.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/network_config.hpp"
#include "infiniband/fabric_config.hpp"
#include "systems/run_driver.hpp"
#include "systems/system.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using hosts::NodeChange;
using systems::Flow;
using systems::FlowCount;
using systems::RunDriver;
using systems::RunReport;
using systems::SystemConfig;

namespace {

void bind_flow(nb::module_& module) {
    auto cls = bind_config<Flow>(module, "Flow", "A flow beside or without event building.");
    cls.attr("ANY_OTHER") = Flow::kAnyOther;
}

void bind_system_config(nb::module_& module) {
    bind_config<transport::HostPathConfig>(module, "PathConfig", "Path of bytes through a host.");
    using Config = SystemConfig;
    auto cls = bind_config<Config>(module, "SystemConfig", "Parts that every system has.");
    bind_settings<hosts::NodesConfig>(cls);
    bind_settings<systems::FlowsConfig>(cls);
    cls.def_ro("bins", &Config::bins, "Bins of what is recorded over time.")
        .def(
            "add_node_change",
            [](Config& self, base::Time at, network::NodeIndex host, NodeChange::What change,
               base::Time until, double factor) {
                self.node_changes.push_back({at, host, change, until, factor});
            },
            nb::arg("at_s"), nb::arg("host"), nb::arg("change"), nb::arg("until_s") = base::Time{},
            nb::arg("factor") = 1.0,
            "Stops the processor of the node on a host for a while, or slows it from then on.");
}

std::uint64_t shown(std::uint64_t count) { return count; }
template <class Row>
Columns<Row> shown(const std::vector<Row>& rows) {
    return {rows};
}

/// Binds a field of a part of the network's report, zero or empty if the part is absent; rows
/// become columns.
template <class Part, class Value>
void bind_part(nb::class_<RunReport>& cls, const char* name,
               std::optional<Part> transport::Report::*part, Value Part::*member,
               const char* meaning) {
    cls.def_prop_ro(
        name,
        [part, member](const RunReport& self) {
            const std::optional<Part>& found = self.network.*part;
            return shown(found ? (*found).*member : Value{});
        },
        meaning);
}

}  // namespace

void bind_simulated(nb::module_& module) {
    bind_report<RunDriver::Accounts>(module, "RunAccounts", "The fates of the MEPs of a run.");
    bind_columns<RunDriver::MembersFrom>(module, "MembersFrom", "Number of members over time.");
    bind_flow(module);
    bind_system_config(module);
    bind_report<FlowCount>(module, "FlowCount", "Traffic of a flow, all sources together.");
    bind_columns<OccupancyBin>(module, "Occupancy", "The bytes in a switch, in bins of time.");
    bind_report<transport::Memory>(
        module, "Memory",
        "Memory of a simulation (B): the parts that grow with the system and its load.");
    using transport::Report;
    auto cls = bind_report<RunReport>(module, "RunReport", "Report of every simulated run.");
    cls.def_ro("flows", &RunReport::flows,
               "Traffic of each flow after the warm-up, in the order of the configuration.")
        .def_ro("flow_latencies", &RunReport::flow_latencies,
                "Time from the post of a message until its receiver has it, after the warm-up; by "
                "flow.")
        .def_ro("level_latencies", &RunReport::level_latencies,
                "Time from the post of a message until the whole message is at its host, after the "
                "warm-up, by service level; empty if all messages have level 0.")
        .def_prop_ro(
            "memory", [](const RunReport& self) { return self.network.memory; },
            "Where memory goes.")
        .def_prop_ro(
            "packet_hops", [](const RunReport& self) { return self.network.packet_hops; },
            "Packets delivered by a link, over all links and the whole run.")
        .def_prop_ro(
            "ack_hops", [](const RunReport& self) { return self.network.ack_hops; },
            "Part of `packet_hops`: Ethernet packets without payload.")
        .def_prop_ro(
            "tcp", [](const RunReport& self) { return self.network.tcp; },
            "Retransmissions and timeouts of TCP after the warm-up; None for other transports.")
        .def_prop_ro(
            "retries", [](const RunReport& self) { return self.network.rdma; },
            "Retransmissions of RDMA and their causes; None for other transports.");
    bind_part(cls, "drops", &Report::ethernet, &ethernet::Report::drops,
              "Frames dropped by Ethernet switches after the warm-up.");
    bind_part(cls, "marks", &Report::ethernet, &ethernet::Report::marks,
              "Frames marked for congestion (ECN) after the warm-up.");
    bind_part(cls, "pauses", &Report::ethernet, &ethernet::Report::pauses,
              "Pause frames of software switches after the warm-up, those that end a pause "
              "included.");
    bind_part(cls, "links", &Report::ethernet, &ethernet::Report::links,
              "Traffic of each Ethernet link after the warm-up; link 2c leads from end a of cable "
              "c to its end b, link 2c + 1 back.");
    bind_part(cls, "classes", &Report::ethernet, &ethernet::Report::classes,
              "Traffic of Ethernet links by class after the warm-up, for ports with several "
              "classes; empty if there was one class.");
    bind_part(cls, "cut", &Report::ethernet, &ethernet::Report::cut,
              "Frames lost on a wire of an Ethernet, by bit errors or as the link went down, after "
              "the warm-up.");
    bind_part(cls, "switches", &Report::ethernet, &ethernet::Report::switches,
              "Occupancy of each Ethernet switch after the warm-up.");
    bind_part(cls, "ports", &Report::infiniband, &infiniband::Report::ports,
              "Counters of each output of an InfiniBand fabric.");
    bind_part(cls, "unrouted", &Report::infiniband, &infiniband::Report::unrouted,
              "Packets without a route at an InfiniBand switch.");
    cls.def_prop_ro(
        "lanes",
        [](const RunReport& self) {
            using Lanes = Columns<infiniband::LaneCounters, 2>;
            return self.network.infiniband ? Lanes{self.network.infiniband->lanes,
                                                   self.network.infiniband->lanes_of_port}
                                           : Lanes{};
        },
        "Counters of each virtual lane of these outputs.");
}

}  // namespace daqloom::bindings

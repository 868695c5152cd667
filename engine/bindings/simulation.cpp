// Reports common to all simulated systems, for Python.
#include "bindings/simulation.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/report.hpp"
#include "infiniband/report.hpp"
#include "sim/histogram.hpp"
#include "systems/run/run_driver.hpp"
#include "systems/system.hpp"
#include "transport/report.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using systems::FlowCount;
using systems::RunDriver;
using systems::RunReport;

namespace {

void bind_histogram(nb::module_& module) {
    using sim::Histogram;
    bind_columns<Histogram::Bucket>(module, "Buckets",
                                    "Non-empty buckets of a histogram, ascending.");
    nb::class_<Histogram>(module, "Histogram",
                          "A distribution of durations: minimum, mean and maximum are exact, "
                          "quantiles within 0.4 %. All are 0 if nothing was recorded.")
        .def_prop_ro("count", &Histogram::count, "Number of durations recorded.")
        .def_prop_ro("min_s", &Histogram::min, "The shortest.")
        .def_prop_ro(
            "mean_s", [](const Histogram& self) { return self.mean_ps() * 1e-12; }, "The mean.")
        .def_prop_ro("max_s", &Histogram::max, "The longest.")
        .def("quantile_s", &Histogram::quantile, nb::arg("share"),
             "Shortest duration that a share of all, 0 to 1, does not exceed.")
        .def_prop_ro(
            "buckets",
            [](const Histogram& self) { return Columns<Histogram::Bucket>{self.buckets()}; },
            "Counts by duration.");
}

void bind_network_reports(nb::module_& module) {
    bind_columns<infiniband::PortReport>(
        module, "Ports", "The outputs at both ends of each cable, over the whole run.");
    bind_columns<infiniband::LaneCounters, 2>(
        module, "Lanes",
        "The virtual lanes of the outputs at both ends of each cable, over the whole run.");
    bind_columns<ethernet::ClassReport>(
        module, "Classes", "Traffic of the links by class, for ports with several classes.");
    bind_columns<ethernet::LinkReport>(module, "Links", "Traffic of the links.");
    bind_columns<ethernet::SwitchReport>(module, "Switches", "Occupancy of the switches.");
    bind_report<transport::TcpSenderCounters>(
        module, "TcpCounters", "Retransmissions and expired timers, all connections together.");
    bind_report<transport::RetryCounters>(module, "RetryCounters",
                                          "Losses and retransmissions over the whole run.");
}

std::uint64_t shown(std::uint64_t count) { return count; }
template <class Row>
Columns<Row> shown(const std::vector<Row>& rows) {
    return {rows};
}

/// Binds a field of a part of the network's report. The value is zero or empty if the network lacks
/// the part; rows become columns.
template <class Part, class Value>
void bind_network_part(nb::class_<RunReport>& cls, const char* name,
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
    bind_report<RunDriver::Loss>(module, "UnitLoss", "The declared loss of a unit.");
    bind_histogram(module);
    bind_network_reports(module);
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
    bind_network_part(cls, "drops", &Report::ethernet, &ethernet::Report::drops,
                      "Frames dropped by Ethernet switches after the warm-up.");
    bind_network_part(cls, "marks", &Report::ethernet, &ethernet::Report::marks,
                      "Frames marked for congestion (ECN) after the warm-up.");
    bind_network_part(cls, "pauses", &Report::ethernet, &ethernet::Report::pauses,
                      "Pause frames of software switches after the warm-up, those that end a pause "
                      "included.");
    bind_network_part(
        cls, "links", &Report::ethernet, &ethernet::Report::links,
        "Traffic of each Ethernet link after the warm-up; link 2c leads from end a of cable "
        "c to its end b, link 2c + 1 back.");
    bind_network_part(
        cls, "classes", &Report::ethernet, &ethernet::Report::classes,
        "Traffic of Ethernet links by class after the warm-up, for ports with several "
        "classes; empty if there was one class.");
    bind_network_part(
        cls, "cut", &Report::ethernet, &ethernet::Report::cut,
        "Frames lost on a wire of an Ethernet, by bit errors or as the link went down, after "
        "the warm-up.");
    bind_network_part(cls, "switches", &Report::ethernet, &ethernet::Report::switches,
                      "Occupancy of each Ethernet switch after the warm-up.");
    bind_network_part(cls, "ports", &Report::infiniband, &infiniband::Report::ports,
                      "Counters of each output of an InfiniBand fabric.");
    bind_network_part(cls, "unrouted", &Report::infiniband, &infiniband::Report::unrouted,
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

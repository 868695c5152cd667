// Simulated networks, for Python. Plain attributes; times in seconds (`_s`), rates in bits per
// second.
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "bindings/subjects.hpp"
#include "ethernet/network_config.hpp"
#include "ethernet/report.hpp"
#include "infiniband/fabric_config.hpp"
#include "infiniband/report.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::Time;
using ethernet::SwitchConfig;
using infiniband::FabricConfig;
using infiniband::LaneArbitration;
using network::NodeIndex;
using network::PortNumber;

namespace {

/// What networks of both technologies have.
template <class Config>
void graph(nb::class_<Config>& cls) {
    using Routes = nb::ndarray<const network::Route, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    cls.def_rw("hosts", &Config::hosts)
        .def_rw("switch_ports", &Config::switch_ports)
        .def(
            "add_cable",
            [](Config& self, NodeIndex a, PortNumber at_a, NodeIndex b, PortNumber at_b,
               base::BitRate rate, Time delay) {
                self.cables.push_back({{a, at_a}, {b, at_b}, rate, delay});
            },
            nb::arg("a"), nb::arg("port_a"), nb::arg("b"), nb::arg("port_b"), nb::arg("rate_bps"),
            nb::arg("delay_s"))
        .def(
            "add_group",
            [](Config& self, NodeIndex node, const std::vector<PortNumber>& ports) {
                self.groups.push_back({node, ports});
            },
            nb::arg("node"), nb::arg("ports"),
            "Ports of a switch that lead to the same hosts: the next of its groups.")
        .def(
            "set_forwarding",
            [](Config& self, const Routes& routes) {
                self.forwarding.assign(routes.data(), routes.data() + routes.size());
            },
            nb::arg("routes"),
            "Forwarding tables by (switch, host): an output port; the number of ports + n for the "
            "n-th group of the switch, n from 1; 0: no route.");
}

/// Of both technologies.
template <class Config>
void reroutings(nb::class_<Config>& cls) {
    using Routes = nb::ndarray<const network::Route, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Groups = std::vector<std::pair<NodeIndex, std::vector<PortNumber>>>;
    cls.def(
        "add_rerouting",
        [](Config& self, Time at, const Routes& routes, const Groups& groups) {
            network::Rerouting one{at, {routes.data(), routes.data() + routes.size()}, {}};
            for (const auto& [node, ports] : groups) {
                one.groups.push_back({node, ports});
            }
            self.reroutings.push_back(std::move(one));
        },
        nb::arg("at_s"), nb::arg("routes"), nb::arg("groups"),
        "During the run, switches forward by other tables, with groups of ports of their own: "
        "pairs of switch and ports.");
}

void bind_infiniband(nb::module_& module) {
    nb::class_<LaneArbitration>(module, "LaneArbitration")
        .def_rw("high", &LaneArbitration::high, "Pairs of lane and weight.")
        .def_rw("low", &LaneArbitration::low, "Likewise.")
        .def_rw("high_limit", &LaneArbitration::high_limit);
    auto cls = nb::class_<FabricConfig>(module, "InfinibandConfig");
    cls.def(nb::init<>())
        .def_rw("lanes", &FabricConfig::lanes)
        .def_rw("service_lanes", &FabricConfig::service_lanes)
        .def_rw("buffer_blocks", &FabricConfig::buffer_blocks)
        .def_rw("input_queue", &FabricConfig::input_queue)
        .def_rw("crossbar_speedup", &FabricConfig::crossbar_speedup)
        .def_rw("crossbar_arbiter", &FabricConfig::crossbar_arbiter)
        .def_rw("crossbar_iterations", &FabricConfig::crossbar_iterations)
        .def_rw("credit_release", &FabricConfig::credit_release)
        .def_rw("credit_update_bytes", &FabricConfig::credit_update_bytes)
        .def_rw("credit_update_interval_s", &FabricConfig::credit_update_interval)
        .def_rw("switch_latency_s", &FabricConfig::switch_latency)
        .def_rw("head_of_queue_lifetime_s", &FabricConfig::head_of_queue_lifetime)
        .def_rw("arbitration", &FabricConfig::arbitration)
        .def_rw("seed", &FabricConfig::seed)
        .def(
            "add_change",
            [](FabricConfig& self, Time at, std::uint32_t link, infiniband::LinkChange::What change,
               base::BitRate rate, double bit_errors, Time link_retry) {
                self.changes.push_back({at, link, change, rate, bit_errors, link_retry});
            },
            nb::arg("at_s"), nb::arg("link"), nb::arg("change"),
            nb::arg("rate_bps") = base::BitRate{}, nb::arg("bit_errors") = 0.0,
            nb::arg("link_retry_s") = Time{},
            "Something happens to a link during the run: another rate or share of bit errors, it "
            "goes dark, is known to be down, or is up. Link 2c leads from end a of cable c to its "
            "end b, link 2c + 1 back.");
    graph(cls);
    reroutings(cls);
    bind_columns<infiniband::PortReport>(
        module, "Ports", "The outputs at both ends of each cable, over the whole run.");
    bind_columns<infiniband::LaneCounters, 2>(
        module, "Lanes", "The virtual lanes of the outputs at both ends of each cable, likewise.");
}

/// A schedule as two attributes.
template <class Config>
void schedule(nb::class_<Config>& cls, ethernet::Schedule Config::*member, const char* scheduling,
              const char* weights, const char* where) {
    using Weights = std::array<std::uint32_t, ethernet::kTrafficClasses>;
    cls.def_prop_rw(
           scheduling, [member](const Config& self) { return (self.*member).scheduling; },
           [member](Config& self, ethernet::Scheduling how) { (self.*member).scheduling = how; },
           where)
        .def_prop_rw(
            weights, [member](const Config& self) { return (self.*member).weights; },
            [member](Config& self, const Weights& each) { (self.*member).weights = each; },
            "Of weighted scheduling, the weight of each class; 0: strict priority.");
}

void bind_ethernet(nb::module_& module) {
    using ethernet::SoftwareSwitchConfig;
    nb::class_<SoftwareSwitchConfig>(module, "SoftwareSwitchConfig")
        .def(nb::init<>())
        .def_rw("ring_packets", &SoftwareSwitchConfig::ring_packets)
        .def_rw("pace_bps", &SoftwareSwitchConfig::pace)
        .def_rw("pace_counts_wire", &SoftwareSwitchConfig::pace_counts_wire)
        .def_rw("destinations", &SoftwareSwitchConfig::destinations,
                "Hosts that have a ring of their own.")
        .def_rw("cores", &SoftwareSwitchConfig::cores)
        .def_rw("packet_cost_s", &SoftwareSwitchConfig::packet_cost)
        .def_rw("batch_cost_s", &SoftwareSwitchConfig::batch_cost)
        .def_rw("descriptors", &SoftwareSwitchConfig::descriptors)
        .def_rw("memory_bps", &SoftwareSwitchConfig::memory)
        .def_rw("pause_packets", &SoftwareSwitchConfig::pause_packets);
    auto of_switch = nb::class_<SwitchConfig>(module, "SwitchConfig");
    of_switch.def(nb::init<>())
        .def_rw("model", &SwitchConfig::model)
        .def_rw("buffer_bytes", &SwitchConfig::buffer)
        .def_rw("dedicated_bytes", &SwitchConfig::dedicated)
        .def_rw("dedicated_ports", &SwitchConfig::dedicated_ports)
        .def_rw("alpha", &SwitchConfig::alpha)
        .def_rw("port_limit_bytes", &SwitchConfig::port_limit)
        .def_rw("cell_size_bytes", &SwitchConfig::cell_size)
        .def_rw("cell_metadata_bytes", &SwitchConfig::cell_metadata)
        .def_rw("queue_packets", &SwitchConfig::queue_packets)
        .def_rw("ecn_threshold_bytes", &SwitchConfig::ecn_threshold)
        .def_rw("hash_seed", &SwitchConfig::hash_seed)
        .def_rw("software", &SwitchConfig::software);
    schedule(of_switch, &SwitchConfig::schedule, "scheduling", "weights",
             "How the outputs share their wires among classes.");
    using Config = ethernet::NetworkConfig;
    auto cls = nb::class_<Config>(module, "EthernetConfig");
    cls.def(nb::init<>())
        .def("add_switch",
             [](Config& self, const SwitchConfig& config) { self.switches.push_back(config); })
        .def_rw("link_names", &Config::link_names)
        .def_rw("buckets_bytes", &Config::buckets,
                "Of the shapers that some cables are, 0 of wires; empty: all are wires.")
        .def_rw("service_classes", &Config::service_classes,
                "The class of the frames of each service level; 0 of levels beyond.")
        .def(
            "add_change",
            [](Config& self, Time at, ethernet::LinkIndex link, ethernet::LinkChange::What change,
               base::BitRate rate, ethernet::TrafficClass traffic_class, bool drops,
               double bit_errors) {
                self.changes.push_back({at, link, change, rate, traffic_class, drops, bit_errors});
            },
            nb::arg("at_s"), nb::arg("link"), nb::arg("change"),
            nb::arg("rate_bps") = base::BitRate{}, nb::arg("traffic_class") = 0,
            nb::arg("drops") = false, nb::arg("bit_errors") = 0.0,
            "Something happens to a link during the run: another rate or pace (0: none), a class "
            "is held or resumed, the link goes down (and drops what waits in front of it and what "
            "comes) or up, or another share of bits has errors.")
        .def_rw("host_jitter", &Config::host_jitter,
                "Longest delay of a frame that finds its host's link idle, in times of that frame "
                "on the wire; 0: hosts have no jitter.")
        .def_rw("seed", &Config::seed);
    schedule(cls, &Config::host_schedule, "host_scheduling", "host_weights",
             "How the link of every host shares its wire among classes.");
    graph(cls);
    reroutings(cls);
    bind_columns<ethernet::ClassReport>(
        module, "Classes", "What the links carried of each class, where ports tell them apart.");
    bind_columns<ethernet::LinkReport>(module, "Links", "What the links carried.");
    bind_columns<ethernet::SwitchReport>(module, "Switches", "What the switches held.");
}

void bind_networks(nb::module_& module) {
    bind_infiniband(module);
    bind_ethernet(module);
}

const Subject networks(bind_networks);

}  // namespace

}  // namespace daqloom::bindings

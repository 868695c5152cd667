// Simulated networks, for Python.
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
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

/// The graph of a network, for both technologies.
template <class Config>
void graph(nb::class_<Config>& cls) {
    using Routes = nb::ndarray<const network::Route, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    bind_settings<network::Graph>(cls);
    cls.def(
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

/// Changes of forwarding tables, for both technologies.
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
        "Changes the forwarding tables during the run. Their groups of ports are pairs of switch "
        "and ports.");
}

void bind_infiniband(nb::module_& module) {
    bind_config<LaneArbitration>(module, "LaneArbitration", "Tables of lane arbitration.");
    auto cls = bind_config<FabricConfig>(module, "InfinibandConfig", "A fabric of InfiniBand.");
    cls.def(
        "add_change",
        [](FabricConfig& self, Time at, std::uint32_t link, infiniband::LinkChange::What change,
           base::BitRate rate, double bit_errors, Time link_retry) {
            self.changes.push_back({at, link, change, rate, bit_errors, link_retry});
        },
        nb::arg("at_s"), nb::arg("link"), nb::arg("change"), nb::arg("rate_bps") = base::BitRate{},
        nb::arg("bit_errors") = 0.0, nb::arg("link_retry_s") = Time{},
        "Changes a link during the run: another rate or share of bit errors, dark, known to be "
        "down, or up. Link 2c leads from end a of cable c to its end b, link 2c + 1 back.");
    graph(cls);
    reroutings(cls);
    bind_columns<infiniband::PortReport>(
        module, "Ports", "The outputs at both ends of each cable, over the whole run.");
    bind_columns<infiniband::LaneCounters, 2>(
        module, "Lanes",
        "The virtual lanes of the outputs at both ends of each cable, over the whole run.");
}

void bind_ethernet(nb::module_& module) {
    bind_config<ethernet::Schedule>(module, "Schedule", "Sharing of a wire among classes.");
    bind_config<ethernet::SoftwareSwitchConfig>(module, "SoftwareSwitchConfig",
                                                "Rings, pace and costs of a software switch.");
    bind_config<SwitchConfig>(module, "SwitchConfig", "Buffer and outputs of a switch.");
    using Config = ethernet::NetworkConfig;
    auto cls = bind_config<Config>(module, "EthernetConfig", "A network of Ethernet.");
    cls.def("add_switch",
            [](Config& self, const SwitchConfig& config) { self.switches.push_back(config); })
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
            "Changes a link during the run: another rate or pace (0: none), a class held or "
            "resumed, link down (drops the frames that wait for it or arrive) or up, or another "
            "share of bit errors.");
    graph(cls);
    reroutings(cls);
    bind_columns<ethernet::ClassReport>(
        module, "Classes", "Traffic of the links by class, for ports with several classes.");
    bind_columns<ethernet::LinkReport>(module, "Links", "Traffic of the links.");
    bind_columns<ethernet::SwitchReport>(module, "Switches", "Occupancy of the switches.");
}

void bind_networks(nb::module_& module) {
    bind_infiniband(module);
    bind_ethernet(module);
}

const Subject networks(bind_networks);

}  // namespace

}  // namespace daqloom::bindings

// Flows on a simulated fabric, for Python. Plain attributes; times in seconds (`_s`).
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "bindings/attributes.hpp"
#include "bindings/index.hpp"
#include "bindings/simulated.hpp"
#include "bindings/systems.hpp"
#include "systems/flow_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_flow(nb::module_& module) {
    auto cls = nb::class_<Flow>(module, "Flow");
    cls.def(nb::init<>())
        .def_rw("name", &Flow::name)
        .def_rw("sources", &Flow::sources)
        .def_rw("destination", &Flow::destination)
        .def_rw("service_level", &Flow::service_level)
        .def_rw("bytes", &Flow::bytes)
        .def_rw("messages", &Flow::messages)
        .def_rw("load", &Flow::load)
        .def_rw("is_poissonian", &Flow::is_poissonian)
        .def_rw("outstanding", &Flow::outstanding);
    cls.attr("ANY_OTHER") = Flow::kAnyOther;
    seconds(cls, "start_s", &Flow::start);
    seconds(cls, "interval_s", &Flow::interval);
}

void bind_config(nb::module_& module) {
    using Config = FlowSystemConfig;
    nb::class_<Config, SystemConfig>(module, "FlowsConfig")
        .def(nb::init<>())
        .def_rw("hosts", &Config::hosts)
        .def("add", [](Config& self, const Flow& flow) { self.flows.push_back(flow); });
}

std::vector<sim::Histogram> latencies(const FlowSystem& system) {
    std::vector<sim::Histogram> by_flow;
    for (std::uint32_t flow = 0; flow < system.config().flows.size(); ++flow) {
        by_flow.push_back(system.latency(flow));
    }
    return by_flow;
}

}  // namespace

void bind_flows(nb::module_& module) {
    bind_flow(module);
    bind_config(module);
    using Arrival = FlowSystem::Arrival;
    bind_columns<Arrival>(module, "MessagesArrived",
                          "Messages that have arrived, in the order of time.");
    bind_report<FlowReport::Count>(module, "FlowCount",
                                   "What all sources of a flow sent together.");
    bind_system_report<FlowReport>(module, "FlowsReport")
        .def_prop_ro(
            "flows", [](const SystemReport<FlowReport>& self) { return self.counted.flows; },
            "What each flow has carried, in the order of the configuration.");
    auto cls = nb::class_<FlowSystem>(module, "FlowSystem");
    cls.def(nb::new_(&make_system<FlowSystem, FlowSystemConfig>), nb::arg("config"))
        .def("record_messages", &FlowSystem::record_messages,
             "Keeps the messages that arrive from here.")
        .def(
            "arrivals", [](const FlowSystem& self) { return Columns<Arrival>{self.arrivals()}; },
            "All messages that have arrived since `record_messages`.")
        .def("latencies", &latencies,
             "From the post of a message until its receiver has it, after the warm-up; by flow.");
    run_and_check(cls);
}

}  // namespace daqloom::bindings

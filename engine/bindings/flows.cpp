// Flows on a simulated fabric, for Python. Plain attributes; times in seconds (`_s`).
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>

#include "bindings/attributes.hpp"
#include "bindings/fabric.hpp"
#include "bindings/latency.hpp"
#include "bindings/systems.hpp"
#include "infiniband/flow_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace infiniband;

namespace {

void bind_flow(nb::module_& module) {
    auto cls = nb::class_<Flow>(module, "Flow");
    cls.def(nb::init<>())
        .def_rw("name", &Flow::name)
        .def_rw("sources", &Flow::sources)
        .def_rw("destination", &Flow::destination)
        .def_ro_static("ANY_OTHER", &Flow::kAnyOther)
        .def_rw("service_level", &Flow::service_level)
        .def_rw("bytes", &Flow::bytes)
        .def_rw("messages", &Flow::messages)
        .def_rw("load", &Flow::load)
        .def_rw("is_poissonian", &Flow::is_poissonian)
        .def_rw("outstanding", &Flow::outstanding);
    seconds(cls, "start_s", &Flow::start);
    seconds(cls, "interval_s", &Flow::interval);
}

void bind_config(nb::module_& module) {
    using Config = FlowSystemConfig;
    nb::class_<Config, ClusterConfig>(module, "FlowsConfig")
        .def(nb::init<>())
        .def_rw("hosts", &Config::hosts)
        .def("add", [](Config& self, const Flow& flow) { self.flows.push_back(flow); });
}

/// Messages and latencies by flow, in the order of the configuration.
nb::dict report(const FlowSystem& system) {
    const FlowReport counted = system.report();
    nb::dict all = report_of_fabric(system);
    all["window_s"] = counted.window.seconds();
    all["processor_s"] = counted.processor.seconds();
    nb::list flows;
    for (std::uint32_t i = 0; i < counted.flows.size(); ++i) {
        nb::dict flow;
        flow["messages"] = counted.flows[i].messages;
        flow["bytes"] = counted.flows[i].bytes;
        flow["latency_s"] = latency_numbers(system.latency(i));
        flows.append(flow);
    }
    all["flows"] = flows;
    return all;
}

/// (posted in seconds, arrived in seconds, source, flow) since `record_messages`.
nb::list arrivals(const FlowSystem& system) {
    nb::list all;
    for (const auto& each : system.arrivals()) {
        all.append(
            nb::make_tuple(each.posted.seconds(), each.arrived.seconds(), each.source, each.flow));
    }
    return all;
}

}  // namespace

void bind_flows(nb::module_& module) {
    bind_flow(module);
    bind_config(module);
    auto cls = nb::class_<FlowSystem>(module, "FlowSystem");
    cls.def(nb::new_(&make_system<FlowSystem, FlowSystemConfig>), nb::arg("config"))
        .def("record_messages", &FlowSystem::record_messages,
             "Keeps the messages that arrive from here.")
        .def("arrivals", &arrivals)
        .def("report", &report, "What was counted, as a dictionary; times in seconds.");
    run_and_check(cls);
}

}  // namespace daqloom::bindings

// DAQPIPE's event building on a simulated fabric, for Python. Plain attributes; times in seconds
// (`_s`).
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
#include "infiniband/daqpipe_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace infiniband;

namespace {

void bind_config(nb::module_& module) {
    using Config = DaqpipeSystemConfig;
    auto cls = nb::class_<Config, ClusterConfig>(module, "DaqpipeConfig");
    cls.def(nb::init<>())
        .def_rw("readouts", &Config::readouts)
        .def_rw("builders", &Config::builders)
        .def_rw("is_push", &Config::is_push)
        .def_rw("credits", &Config::credits)
        .def_rw("parallel_sends", &Config::parallel_sends)
        .def_rw("fragment_bytes", &Config::fragment_bytes)
        .def_rw("is_poissonian", &Config::is_poissonian)
        .def_rw("processing", &Config::processing);
    seconds(cls, "slot_s", &Config::slot);
    seconds(cls, "event_interval_s", &Config::event_interval);
}

nb::dict report(const DaqpipeSystem& system) {
    nb::dict all = report_of_fabric(system);
    add_counted(all, system.report());
    all["latency_s"] = latency_numbers(system.latency());
    return all;
}

/// (assigned in seconds, built in seconds, builder, event) since `record_events`.
nb::list events_built(const DaqpipeSystem& system) {
    nb::list all;
    for (const auto& each : system.events_built()) {
        all.append(nb::make_tuple(each.assigned.seconds(), each.built.seconds(), each.builder,
                                  static_cast<std::uint64_t>(each.event)));
    }
    return all;
}

/// (assigned in seconds, builder, event) of those not yet built.
nb::list events_under_way(const DaqpipeSystem& system) {
    nb::list all;
    for (const auto& each : system.events_under_way()) {
        all.append(nb::make_tuple(each.at.seconds(), each.builder,
                                  static_cast<std::uint64_t>(each.event)));
    }
    return all;
}

}  // namespace

void bind_daqpipe(nb::module_& module) {
    bind_config(module);
    auto cls = nb::class_<DaqpipeSystem>(module, "DaqpipeSystem");
    cls.def(nb::new_(&make_system<DaqpipeSystem, DaqpipeSystemConfig>), nb::arg("config"))
        .def("record_events", &DaqpipeSystem::record_events, "Keeps the events built from here.")
        .def("events_built", &events_built)
        .def("events_under_way", &events_under_way)
        .def("report", &report, "What was counted, as a dictionary; times in seconds.");
    run_and_check(cls);
}

}  // namespace daqloom::bindings

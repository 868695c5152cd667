// DAQPIPE's event building on a simulated fabric, for Python. Plain attributes; times in seconds
// (`_s`).
#include "bindings/casters.hpp"
#include "bindings/regrouping.hpp"
#include "bindings/rules.hpp"
#include "bindings/simulation.hpp"
#include "bindings/subjects.hpp"
#include "systems/daqpipe_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_daqpipe_config(nb::module_& module) {
    using Config = DaqpipeSystemConfig;
    auto cls = nb::class_<Config, SystemConfig>(module, "DaqpipeConfig");
    cls.def(nb::init<>())
        .def_rw("readouts", &Config::readouts)
        .def_rw("builders", &Config::builders)
        .def_rw("fragment_bytes", &Config::fragment_bytes)
        .def_rw("event_interval_s", &Config::event_interval)
        .def_rw("is_poissonian", &Config::is_poissonian)
        .def_rw("processing", &Config::processing);
    bind_regrouping(cls);
    bind_rules(cls);
}

void bind_daqpipe(nb::module_& module) {
    bind_daqpipe_config(module);
    using Built = DaqpipeSystem::Built;
    using Assigned = DaqpipeSystem::Assigned;
    bind_columns<Built>(module, "EventsBuilt", "Events built, in the order of time.");
    bind_columns<Assigned>(module, "EventsUnderWay", "Events not yet built, by number.");
    auto cls = bind_system<DaqpipeSystem>(module, "DaqpipeSystem", "DaqpipeReport");
    bind_run_control(cls);
    cls.def("record_events", &DaqpipeSystem::record_events, "Records the events built from now on.")
        .def(
            "events_built",
            [](const DaqpipeSystem& self) { return Columns<Built>{self.events_built()}; },
            "All events built since `record_events`.")
        .def(
            "events_under_way",
            [](const DaqpipeSystem& self) { return Columns<Assigned>{self.events_under_way()}; },
            "The events that are assigned and not yet built.")
        .def_prop_ro("latency", &DaqpipeSystem::latency,
                     "Time from the assignment of an event until it is built, after the warm-up.");
}

const Subject daqpipe(bind_daqpipe);

}  // namespace

}  // namespace daqloom::bindings

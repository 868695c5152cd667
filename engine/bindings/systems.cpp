// The simulated systems, for Python.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/settings.hpp"
#include "bindings/simulation.hpp"
#include "bindings/subjects.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/schedule/shift_rules.hpp"
#include "protocol/schedule/storage_rules.hpp"
#include "systems/flow_system.hpp"
#include "systems/recording/recorder.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/ring/node_ring.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

/// Binds a system's configuration: `Own` and the parts that every system has.
template <class Config, class... Own>
nb::class_<Config> bind_system_config(nb::module_& module, const char* name) {
    return bind_config<Config, Own..., hosts::NodesConfig, FlowsConfig>(module, name,
                                                                        "A system and its run.");
}

// ---- pull building

void record(PullSystem& self, const std::map<std::string, std::string>& captures,
            const std::string& timeline) {
    // Old files are removed before new files, which may have the same names.
    self.recorder().reset();
    self.recorder() = value_of(Recorder::make(self, captures, timeline));
}

void finish_recording(PullSystem& self) {
    if (const auto recorder = std::move(self.recorder())) {
        value_of(recorder->close());
    }
}

void run(PullSystem& self, const Progress& progress, std::optional<base::Time> until) {
    try {
        run_in_slices(self, progress, until);
    } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_KeyboardInterrupt)) {
            // The exception refers to the system and delays its destructor; remove files here.
            self.recorder().reset();
        }
        throw;
    } catch (...) {
        self.recorder().reset();
        throw;
    }
}

void bind_pull(nb::module_& module) {
    bind_config<protocol::StorageRules>(module, "StorageRules", "Rules of storage.")
        .def(
            "accepts",
            [](const protocol::StorageRules& self, std::uint64_t event, std::uint64_t seed) {
                return self.accepts(protocol::EventId{event}, seed);
            },
            nb::arg("event"), nb::arg("seed"),
            "Whether an event is accepted, by its number in the run and the seed of the run.");
    bind_config<protocol::PullRules>(module, "PullRules", "Rules of pull event building.");
    using Config = PullSystemConfig;
    auto config = bind_system_config<Config, RequestedConfig, RegroupingConfig, SystemConfig>(
        module, "PullConfig");
    bind_rules<protocol::PullRules>(config);
    bind_columns<BuiltBin>(module, "BuiltBins", "Events built, in the bins of the occupancy.");
    auto cls = bind_system<PullSystem>(module, "PullSystem", "PullReport", &run);
    bind_run_control(cls);
    cls.def("record", &record, nb::arg("captures"), nb::arg("timeline"),
            "Records the run from now on: pcapng files by name of the link, and a timeline unless "
            "empty. The files appear at finish_recording(), and never if the run fails.")
        .def("finish_recording", &finish_recording, "Completes the files.")
        .def_prop_ro("latency", &PullSystem::latency, nb::rv_policy::copy,
                     "Time from the assignment of an event until it is built.")
        .def_prop_ro(
            "built", [](const PullSystem& self) { return Columns<BuiltBin>{self.built_bins()}; },
            "Events built in the bins of the occupancy.");
}

// ---- linear shifting

void bind_shift(nb::module_& module) {
    bind_config<CardStop>(module, "CardStop", "Time without acknowledgements of a card.");
    bind_config<protocol::ShiftRules>(module, "ShiftRules", "Rules of linear shifting.");
    using Config = ShiftSystemConfig;
    auto config = bind_system_config<Config, RegroupingConfig, SystemConfig>(module, "ShiftConfig");
    bind_rules<protocol::ShiftRules>(config);
    using Stage = ShiftSystem::UnitStage;
    bind_columns<Stage>(module, "Stages", "The stages of readout units, in the order of time.");
    auto cls = bind_system<ShiftSystem>(module, "ShiftSystem", "ShiftReport");
    bind_run_control(cls);
    cls.def("record_stages", &ShiftSystem::record_stages, "Records stages from now on.")
        .def(
            "stages", [](const ShiftSystem& self) { return Columns<Stage>{self.stages()}; },
            "All stages since `record_stages`.");
}

// ---- DAQPIPE

void bind_daqpipe(nb::module_& module) {
    bind_config<protocol::DaqpipeRules>(module, "DaqpipeRules", "Rules of DAQPIPE.");
    using Config = DaqpipeSystemConfig;
    auto config = bind_system_config<Config, RequestedConfig, RegroupingConfig, SystemConfig>(
        module, "DaqpipeConfig");
    bind_rules<protocol::DaqpipeRules>(config);
    using BuiltEvent = DaqpipeSystem::BuiltEvent;
    using AssignedEvent = DaqpipeSystem::AssignedEvent;
    bind_columns<BuiltEvent>(module, "EventsBuilt", "Events built, in the order of time.");
    bind_columns<AssignedEvent>(module, "EventsUnderWay", "Events not yet built, by number.");
    auto cls = bind_system<DaqpipeSystem>(module, "DaqpipeSystem", "DaqpipeReport");
    bind_run_control(cls);
    cls.def("record_events", &DaqpipeSystem::record_events, "Records the events built from now on.")
        .def(
            "events_built",
            [](const DaqpipeSystem& self) { return Columns<BuiltEvent>{self.events_built()}; },
            "All events built since `record_events`.")
        .def(
            "events_under_way",
            [](const DaqpipeSystem& self) {
                return Columns<AssignedEvent>{self.events_under_way()};
            },
            "The events that are assigned and not yet built.")
        .def_prop_ro("latency", &DaqpipeSystem::latency,
                     "Time from the assignment of an event until it is built, after the warm-up.");
}

// ---- flows alone

void bind_flows(nb::module_& module) {
    bind_system_config<SystemConfig>(module, "SystemConfig");
    using Arrival = FlowTraffic::Arrival;
    bind_columns<Arrival>(module, "MessagesArrived",
                          "Messages that have arrived, in the order of time.");
    bind_system<FlowSystem>(module, "FlowSystem", "FlowsReport")
        .def(
            "record_messages", [](FlowSystem& self) { self.flows().record_messages(); },
            "Records the messages that arrive from now on.")
        .def(
            "arrivals",
            [](const FlowSystem& self) { return Columns<Arrival>{self.flows().arrivals()}; },
            "All messages that have arrived since `record_messages`.");
}

// ---- nodes on a ring

void bind_node_ring(nb::module_& module) {
    using Config = NodeRingConfig;
    bind_config<Config>(module, "NodeRingConfig", "Nodes on a ring.");
    bind_report<NodeRingReport>(module, "NodeRingReport", "Report of nodes on a ring.");
    module.def(
        "play_node_ring",
        [](const Config& config) { return without_lock([&] { return play_node_ring(config); }); },
        nb::arg("config"), "Nodes on a ring; all begin step 0 at time zero.");
}

void bind_systems(nb::module_& module) {
    bind_config<ScheduleChange>(module, "ScheduleChange",
                                "Later hosts in the slots of the schedule.");
    bind_pull(module);
    bind_shift(module);
    bind_daqpipe(module);
    bind_flows(module);
    bind_node_ring(module);
}

const Subject all_systems(bind_systems);

}  // namespace

}  // namespace daqloom::bindings

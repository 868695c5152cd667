// Simulated systems whose units may be lost, for Python.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "systems/regrouping_system.hpp"

namespace daqloom::bindings {

/// Attributes of the configuration of a system whose units may be lost.
template <class Config>
void bind_regrouping(nanobind::class_<Config, systems::SystemConfig>& cls) {
    namespace nb = nanobind;
    cls.def(
           "set_run", [](Config& self, const protocol::RunPlan& plan) { self.run = plan; },
           nb::arg("plan"),
           "Plan by which the other units leave out lost ones. The slots define the units.")
        .def_rw("launch_s", &Config::launch)
        .def_rw("spare_slots", &Config::spare_slots)
        .def_rw("keeps_lost_slots", &Config::keeps_lost_slots)
        .def(
            "add_schedule",
            [](Config& self, base::Time at, std::vector<network::NodeIndex> slots,
               std::vector<network::NodeIndex> builder_slots) {
                self.schedule_changes.push_back({at, std::move(slots), std::move(builder_slots)});
            },
            nb::arg("at_s"), nb::arg("slots"), nb::arg("builder_slots"),
            "Ends the epoch at a time; the next one has another order of the units in the slots of "
            "the schedule. For systems whose units regroup.");
}

/// Raises ValueError if the system has no run control.
template <class System>
const systems::RunDriver& run_of(const System& system) {
    if (system.run_control() == nullptr) {
        throw nanobind::value_error("this system has no run control");
    }
    return *system.run_control();
}

template <class System>
void bind_run_control(nanobind::class_<System>& cls) {
    using systems::RunDriver;
    cls.def(
           "accounts", [](const System& self) { return run_of(self).accounts(); },
           "Fates of all MEPs of the run until now.")
        .def(
            "members",
            [](const System& self) {
                return Columns<RunDriver::MembersFrom>{run_of(self).members()};
            },
            "Number of members over time: times and counts.")
        .def(
            "losses",
            [](const System& self) {
                std::vector<std::pair<double, std::uint32_t>> all;
                for (const RunDriver::Loss& loss : run_of(self).losses()) {
                    all.emplace_back(loss.at.seconds(),
                                     self.host_of(protocol::UnitIndex(loss.unit)).value());
                }
                return all;
            },
            "Declared losses of units: times (s) and hosts.")
        .def(
            "run_log",
            [](const System& self) {
                std::vector<std::pair<double, std::string>> all;
                for (const protocol::RunEvent& each : run_of(self).control().events()) {
                    all.emplace_back(each.at.seconds(), each.text);
                }
                return all;
            },
            "The log of the run control: times (s) and texts.")
        .def_prop_ro("messages_dropped", &System::messages_dropped,
                     "Messages dropped as their receiver was not, or no longer, in their epoch.");
}

}  // namespace daqloom::bindings

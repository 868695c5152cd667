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

/// Of the configuration of such a system.
template <class Config>
void bind_regrouping(nanobind::class_<Config, systems::SystemConfig>& cls) {
    namespace nb = nanobind;
    cls.def(
           "set_run", [](Config& self, const protocol::RunPlan& plan) { self.run = plan; },
           nb::arg("plan"),
           "Units that are lost are left out by the others, by this plan. Which units there are is "
           "told by the slots.")
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
            "Another order of the units in the slots of the schedule, from the end of an epoch on, "
            "which ends then; where units regroup.");
}

/// Raises ValueError where no unit is to be lost.
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
           "The fates of all MEPs of the run until now.")
        .def(
            "members",
            [](const System& self) {
                return Columns<RunDriver::MembersFrom>{run_of(self).members()};
            },
            "How many units build, and from when on.")
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
            "When units were declared lost (s), and their hosts.")
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
        .def_prop_ro("letters_dropped", &System::letters_dropped,
                     "Messages that came to units that were not, or no more, in their epoch.");
}

}  // namespace daqloom::bindings

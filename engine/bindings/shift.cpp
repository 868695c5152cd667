// An event builder under linear shifting on a simulated fabric, for Python. Plain attributes; times
// in seconds (`_s`).
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/rules.hpp"
#include "bindings/simulated.hpp"
#include "bindings/subjects.hpp"
#include "systems/shift_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_config(nb::module_& module) {
    using protocol::SpikyDelay;
    nb::class_<SpikyDelay>(module, "SpikyDelay")
        .def_rw("usual", &SpikyDelay::usual)
        .def_rw("spike", &SpikyDelay::spike)
        .def_rw("spike_probability", &SpikyDelay::spike_probability);
    using Config = ShiftSystemConfig;
    auto cls = nb::class_<Config, SystemConfig>(module, "ShiftConfig");
    cls.def(nb::init<>())
        .def_rw("slots", &Config::slots)
        .def_rw("builder_slots", &Config::builder_slots)
        .def_rw("spare_slots", &Config::spare_slots)
        .def(
            "add_schedule",
            [](Config& self, base::Time at, std::vector<NodeIndex> slots,
               std::vector<NodeIndex> builder_slots) {
                self.schedule_changes.push_back({at, std::move(slots), std::move(builder_slots)});
            },
            nb::arg("at_s"), nb::arg("slots"), nb::arg("builder_slots"),
            "Another order of the units in the slots of the schedule, from the end of an epoch on, "
            "which ends then; where units regroup.")
        .def_rw("mfp_interval_s", &Config::mfp_interval)
        .def_rw("phase_jitter", &Config::phase_jitter)
        .def_rw("mfp_bytes", &Config::mfp_bytes)
        .def_rw("streams", &Config::streams)
        .def_rw("is_poissonian", &Config::is_poissonian)
        .def_rw("buffered_mfps", &Config::buffered_mfps)
        .def_rw("stream_buffer", &Config::stream_buffer)
        .def_rw("output_buffer", &Config::output_buffer)
        .def_rw("processing", &Config::processing)
        .def_rw("source_acknowledge", &Config::source_acknowledge)
        .def_rw("card_buffer", &Config::card_buffer)
        .def_rw("card_acknowledge", &Config::card_acknowledge)
        .def(
            "add_card_stop",
            [](Config& self, protocol::ReadoutIndex unit, base::Time begin, base::Time end) {
                self.card_stops.push_back({unit, begin, end});
            },
            nb::arg("unit"), nb::arg("begin_s"), nb::arg("end_s"),
            "The card of a readout unit acknowledges nothing for a while.")
        .def(
            "set_run", [](Config& self, const protocol::RunPlan& plan) { self.run = plan; },
            nb::arg("plan"),
            "Units that are lost are left out by the others, by this plan. Which units there are "
            "is told by the slots.")
        .def_rw("launch_s", &Config::launch)
        .def_rw("keeps_lost_slots", &Config::keeps_lost_slots);
    bind_rules(cls);
}

/// Raises ValueError where no unit is to be lost.
const RunDriver& run_of(const ShiftSystem& system) {
    if (system.run_control() == nullptr) {
        throw nb::value_error("this system has no run control");
    }
    return *system.run_control();
}

using LogRow = std::pair<double, std::string>;

void bind_run_control(nb::module_& module, nb::class_<ShiftSystem>& cls) {
    bind_report<RunDriver::Accounts>(module, "RunAccounts", "The fates of the MEPs of a run.");
    bind_columns<RunDriver::MembersFrom>(module, "MembersFrom", "How many units build.");
    cls.def(
           "accounts", [](const ShiftSystem& self) { return run_of(self).accounts(); },
           "The fates of all MEPs of the run until now.")
        .def(
            "members",
            [](const ShiftSystem& self) {
                return Columns<RunDriver::MembersFrom>{run_of(self).members()};
            },
            "How many units build, and from when on.")
        .def(
            "losses",
            [](const ShiftSystem& self) {
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
            [](const ShiftSystem& self) {
                std::vector<LogRow> all;
                for (const protocol::RunEvent& each : run_of(self).control().events()) {
                    all.emplace_back(each.at.seconds(), each.text);
                }
                return all;
            },
            "The log of the run control: times (s) and texts.")
        .def_prop_ro("letters_dropped", &ShiftSystem::letters_dropped,
                     "Messages that came to units that were not, or no more, in their epoch.");
}

void bind_shift(nb::module_& module) {
    bind_config(module);
    using Stage = ShiftSystem::UnitStage;
    bind_columns<Stage>(module, "Stages", "The stages of readout units, in the order of time.");
    auto cls = bind_system<ShiftSystem>(module, "ShiftSystem", "ShiftReport");
    bind_run_control(module, cls);
    cls.def("record_stages", &ShiftSystem::record_stages, "Keeps the stages of units from here.")
        .def(
            "stages", [](const ShiftSystem& self) { return Columns<Stage>{self.stages()}; },
            "All stages since `record_stages`.");
}

const Subject shift(bind_shift);

}  // namespace

}  // namespace daqloom::bindings

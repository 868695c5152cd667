// An event builder under linear shifting on a simulated fabric, for Python. Plain attributes; times
// in seconds (`_s`).
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/regrouping.hpp"
#include "bindings/rules.hpp"
#include "bindings/simulation.hpp"
#include "bindings/subjects.hpp"
#include "systems/shift_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_shift_config(nb::module_& module) {
    bind_config<protocol::SpikyDelay>(module, "SpikyDelay", "Delay with spikes.");
    using Config = ShiftSystemConfig;
    auto cls = nb::class_<Config, SystemConfig>(module, "ShiftConfig");
    cls.def(nb::init<>())
        .def_rw("slots", &Config::slots)
        .def_rw("builder_slots", &Config::builder_slots)
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
            "The card of a readout unit sends no acknowledgements for a while.");
    bind_regrouping(cls);
    bind_rules(cls);
}

void bind_shift(nb::module_& module) {
    bind_shift_config(module);
    using Stage = ShiftSystem::UnitStage;
    bind_columns<Stage>(module, "Stages", "The stages of readout units, in the order of time.");
    auto cls = bind_system<ShiftSystem>(module, "ShiftSystem", "ShiftReport");
    bind_run_control(cls);
    cls.def("record_stages", &ShiftSystem::record_stages, "Records stages from now on.")
        .def(
            "stages", [](const ShiftSystem& self) { return Columns<Stage>{self.stages()}; },
            "All stages since `record_stages`.");
}

const Subject shift(bind_shift);

}  // namespace

}  // namespace daqloom::bindings

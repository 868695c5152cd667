// An event builder under linear shifting on a simulated fabric, for Python. Plain attributes; times
// in seconds (`_s`).
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

#include "bindings/attributes.hpp"
#include "bindings/index.hpp"
#include "bindings/rules.hpp"
#include "bindings/simulated.hpp"
#include "bindings/systems.hpp"
#include "systems/shift_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

/// Of hosts; -1 is a dummy's.
using Numbers = std::vector<std::int64_t>;

Numbers numbers(const std::vector<NodeIndex>& slots) {
    Numbers hosts;
    for (const NodeIndex host : slots) {
        hosts.push_back(host == NodeIndex::none() ? -1 : std::int64_t{host.value()});
    }
    return hosts;
}

std::vector<NodeIndex> slots(const Numbers& hosts) {
    std::vector<NodeIndex> slots;
    for (const std::int64_t host : hosts) {
        slots.push_back(host < 0 ? NodeIndex::none() : NodeIndex(host));
    }
    return slots;
}

void bind_config(nb::module_& module) {
    using protocol::SpikyDelay;
    nb::class_<SpikyDelay>(module, "SpikyDelay")
        .def_rw("usual", &SpikyDelay::usual)
        .def_rw("spike", &SpikyDelay::spike)
        .def_rw("spike_probability", &SpikyDelay::spike_probability);
    using Config = ShiftSystemConfig;
    auto cls = nb::class_<Config, SystemConfig>(module, "ShiftConfig");
    cls.def(nb::init<>())
        .def_prop_rw(
            "slots", [](const Config& self) { return numbers(self.slots); },
            [](Config& self, const Numbers& hosts) { self.slots = slots(hosts); })
        .def_prop_rw(
            "builder_slots", [](const Config& self) { return numbers(self.builder_slots); },
            [](Config& self, const Numbers& hosts) { self.builder_slots = slots(hosts); })
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
        .def_rw("card_acknowledge", &Config::card_acknowledge);
    shift_rules(cls);
    seconds(cls, "mfp_interval_s", &Config::mfp_interval);
}

}  // namespace

void bind_shift(nb::module_& module) {
    bind_config(module);
    using Stage = ShiftSystem::UnitStage;
    bind_columns<Stage>(module, "Stages", "The stages of readout units, in the order of time.");
    bind_system_report<ShiftReport>(module, "ShiftReport");
    auto cls = nb::class_<ShiftSystem>(module, "ShiftSystem");
    cls.def(nb::new_(&make_system<ShiftSystem, ShiftSystemConfig>), nb::arg("config"))
        .def("record_stages", &ShiftSystem::record_stages, "Keeps the stages of units from here.")
        .def(
            "stages", [](const ShiftSystem& self) { return Columns<Stage>{self.stages()}; },
            "All stages since `record_stages`.");
    run_and_check(cls);
}

}  // namespace daqloom::bindings

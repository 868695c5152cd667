// Pull event building on a simulated network, for Python. Plain attributes; times in seconds
// (`_s`).
#include <map>
#include <memory>
#include <string>

#include "bindings/casters.hpp"
#include "bindings/regrouping.hpp"
#include "bindings/rules.hpp"
#include "bindings/simulation.hpp"
#include "bindings/subjects.hpp"
#include "systems/pull_system.hpp"
#include "systems/recording/recorder.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_pull_config(nb::module_& module) {
    using Config = PullSystemConfig;
    auto cls = nb::class_<Config, SystemConfig>(module, "PullConfig");
    cls.def(nb::init<>())
        .def_rw("readouts", &Config::readouts)
        .def_rw("builders", &Config::builders)
        .def_rw("request_bytes", &Config::request_size)
        .def_rw("manager_is_networked", &Config::manager_is_networked)
        .def_rw("readout_cost_per_message_s", &Config::readout_cost_per_message)
        .def_rw("builder_cost_per_message_s", &Config::builder_cost_per_message);
    bind_regrouping(cls);
    bind_rules(cls);
}

/// The object in Python: a system and its recorder, which refers to it and is destroyed first.
struct Recorded {
    std::unique_ptr<PullSystem> system;
    std::unique_ptr<Recorder> recorder;

    [[nodiscard]] base::Time now() const { return system->now(); }
    [[nodiscard]] const transport::Transport& transport() const { return system->transport(); }
    [[nodiscard]] systems::RunReport run_report() { return system->run_report(); }
    [[nodiscard]] PullReport report() const { return system->report(); }
    [[nodiscard]] base::expected<void> check_conservation() const {
        return system->check_conservation();
    }
    [[nodiscard]] const RunDriver* run_control() const { return system->run_control(); }
    [[nodiscard]] network::NodeIndex host_of(protocol::UnitIndex unit) const {
        return system->host_of(unit);
    }
    [[nodiscard]] std::uint64_t messages_dropped() const { return system->messages_dropped(); }
};

std::unique_ptr<Recorded> make(const PullSystemConfig& config) {
    return std::make_unique<Recorded>(Recorded{value_of(PullSystem::make(config)), nullptr});
}

void record(Recorded& self, const std::map<std::string, std::string>& captures,
            const std::string& timeline) {
    self.recorder.reset();  // removes the old files before new ones, which may have the same names
    self.recorder = value_of(Recorder::make(*self.system, captures, timeline));
}

void finish_recording(Recorded& self) {
    if (const auto recorder = std::move(self.recorder)) {
        value_of(recorder->close());
    }
}

void run(Recorded& self, const Progress& progress, std::optional<base::Time> until) {
    try {
        run_in_slices(*self.system, progress, until);
    } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_KeyboardInterrupt)) {
            // An exception keeps the system alive; incomplete files are removed now.
            self.recorder.reset();
        }
        throw;
    } catch (...) {
        self.recorder.reset();
        throw;
    }
}

void bind_pull(nb::module_& module) {
    bind_pull_config(module);
    bind_columns<BuiltBin>(module, "BuiltBins", "Events built, in the bins of the occupancy.");
    bind_system_report<PullReport>(module, "PullReport");
    auto cls = nb::class_<Recorded>(module, "PullSystem");
    cls.def(nb::new_(&make), nb::arg("config"))
        .def("record", &record, nb::arg("captures"), nb::arg("timeline"),
             "Records the run from now on: pcapng files by name of the link, and a timeline unless "
             "empty. The files appear at finish_recording(), and never if the run fails.")
        .def("finish_recording", &finish_recording, "Completes the files.")
        .def("run", &run, nb::arg("progress").none() = nb::none(),
             nb::arg("until_s").none() = nb::none(),
             "Simulates to the end of the run, to an earlier time, or to Ctrl-C between two "
             "slices. The observers and the recording are valid after each.")
        .def_prop_ro(
            "latency", [](const Recorded& self) { return self.system->latency(); },
            "Time from the assignment of an event until it is built.")
        .def_prop_ro(
            "built",
            [](const Recorded& self) { return Columns<BuiltBin>{self.system->built_bins()}; },
            "Events built in the bins of the occupancy.");
    bind_run_control(cls);
    bind_observers(cls);
}

const Subject pull(bind_pull);

}  // namespace

}  // namespace daqloom::bindings

// Common bindings of all simulated systems.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "bindings/casters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "infiniband/network.hpp"
#include "sim/time_series.hpp"
#include "systems/run/run_driver.hpp"
#include "systems/system.hpp"

namespace daqloom::bindings {

using Progress = std::function<void(double)>;

/// Simulates until `until`, by default to the end of the run. Works without the interpreter lock,
/// in slices of about a tenth of a second. Between slices it checks for Ctrl-C, which leaves the
/// system in the state after the last slice, and reports the progress in virtual seconds.
template <class System>
void run_in_slices(System& system, const Progress& progress, std::optional<base::Time> until) {
    const nanobind::gil_scoped_release unlocked;
    const base::Time end = std::min(until.value_or(base::Time::never()), system.config().duration);
    base::Time slice = base::nanoseconds(100);  // hosts by the hundred take a second for 10 us
    while (system.now() < end) {
        const auto before = std::chrono::steady_clock::now();
        system.run(std::min(system.now() + slice, end));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
        slice = took.count() < 0.05 ? slice * 2 : took.count() > 0.2 ? slice / 2 : slice;
        const nanobind::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) {
            throw nanobind::python_error();
        }
        if (progress) {
            progress(system.now().seconds());
        }
    }
}

/// The reports of a run and of its protocol, as one object in Python.
template <class Counted>
struct SystemReport : systems::RunReport, Counted {};

template <class System>
auto report_of(System& system) {
    using Counted = decltype(system.report());
    return SystemReport<Counted>{system.run_report(), system.report()};
}

/// A class with the fields of RunReport and of `Counted`.
template <class Counted>
auto bind_system_report(nanobind::module_& module, const char* name) {
    using Report = SystemReport<Counted>;
    auto cls = nanobind::class_<Report, systems::RunReport>(
        module, name, "Counts after the warm-up, summed over all nodes.");
    bind_fields<Counted>(cls);
    return cls;
}

/// A bin of the occupancy of a buffer.
struct OccupancyBin {
    DAQLOOM_FIELDS(OccupancyBin, (double, time_s, "Start of each bin."),
                   (base::Bytes, max_bytes, "Most bytes at a time in each bin."))
};

inline Columns<OccupancyBin> columns(const sim::TimeSeries& series) {
    Columns<OccupancyBin> bins;
    double start_s = series.start().seconds();
    for (const auto& bin : series.bins()) {
        bins.rows.push_back({start_s, bin.max});
        start_s += series.bin_width().seconds();
    }
    return bins;
}

/// Series of a switch; empty if the network has no such switch, or the switch no such series.
template <auto series, class System>
Columns<OccupancyBin> series_of(const System& system, network::SwitchIndex at) {
    const ethernet::Network* const network = system.transport().ethernet();
    const bool is_there = network != nullptr && at.value() < network->switches().size();
    return is_there && (network->*series)(at) ? columns(*(network->*series)(at))
                                              : Columns<OccupancyBin>{};
}

template <class System>
std::vector<std::pair<network::NodeIndex, network::PortNumber>> deadlock(const System& system) {
    std::vector<std::pair<network::NodeIndex, network::PortNumber>> circle;
    if (const infiniband::Network* const fabric = system.transport().infiniband()) {
        for (const network::End end : fabric->deadlock()) {
            circle.emplace_back(end.node, end.port);
        }
    }
    return circle;
}

template <class System>
std::string broken_conservation(const System& system) {
    const auto conserved = system.check_conservation();
    return conserved ? std::string() : conserved.error().message;
}

/// Observers of every system.
template <class System>
void bind_observers(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
    cls.def_prop_ro("now_s", &System::now, "Virtual time up to which was simulated.")
        .def("report", &report_of<System>, "Counts of the run.")
        .def("occupancy", &series_of<&ethernet::Network::occupancy, System>, nb::arg("switch"),
             "Bytes held in an Ethernet switch, in bins of the time after the warm-up.")
        .def("needed", &series_of<&ethernet::Network::least_buffer, System>, nb::arg("switch"),
             "Least size of the shared memory that would hold the frames, in the same bins; empty "
             "for a switch without shared memory.")
        .def("deadlock", &deadlock<System>,
             "Outputs (node, port) that wait for one another in a circle.")
        .def("broken_conservation", &broken_conservation<System>,
             "The violated conservation law, in a sentence; empty if all hold.");
}

/// Raises ValueError if the system has no run control.
template <class System>
const systems::RunDriver& run_of(const System& system) {
    if (system.run_control() == nullptr) {
        throw nanobind::value_error("this system has no run control");
    }
    return *system.run_control();
}

/// Observers of a system whose units may be lost.
template <class System>
void bind_run_control(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
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
            "losses", [](const System& self) { return run_of(self).losses(); },
            "Declared losses of units, in the order of time.")
        .def(
            "run_log", [](const System& self) { return run_of(self).control().events(); },
            "The log of the run control.")
        .def("host_of", &System::host_of, nb::arg("unit"), "Host of a unit.")
        .def_prop_ro("messages_dropped", &System::messages_dropped,
                     "Messages dropped as their receiver was not, or no longer, in their epoch.");
}

/// A system, constructed from its configuration, and its report.
template <class System>
nanobind::class_<System> bind_system(nanobind::module_& module, const char* name,
                                     const char* report,
                                     void (*run)(System&, const Progress&,
                                                 std::optional<base::Time>) = &run_in_slices) {
    namespace nb = nanobind;
    using Config = std::remove_cvref_t<decltype(std::declval<System>().config())>;
    bind_system_report<decltype(std::declval<System>().report())>(module, report);
    nb::class_<System> cls(module, name);
    cls.def(nb::new_([](const Config& config) { return value_of(System::make(config)); }),
            nb::arg("config"))
        .def("run", run, nb::arg("progress").none() = nb::none(),
             nb::arg("until_s").none() = nb::none(),
             "Simulates to the end of the run, to an earlier time, or to Ctrl-C between two "
             "slices. The observers are valid after each.");
    bind_observers(cls);
    return cls;
}

}  // namespace daqloom::bindings

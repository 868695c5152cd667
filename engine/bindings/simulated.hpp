// What every simulated system has, for Python.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/run.hpp"
#include "infiniband/network.hpp"
#include "sim/time_series.hpp"
#include "systems/system.hpp"

namespace daqloom::bindings {

template <class System, class Config>
std::unique_ptr<System> make_system(const Config& config) {
    return value_of(System::make(config));
}

/// The report of a protocol behind that of the run; Python sees it as one.
template <class Counted>
struct SystemReport : systems::RunReport {
    Counted counted;
};

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
        module, name, "What was counted after the warm-up, by all nodes together.");
    bind_fields<Counted>(cls, [](const Report& self) -> const Counted& { return self.counted; });
    return cls;
}

/// A bin of the occupancy of a buffer.
struct OccupancyBin {
    double time_s = 0;
    base::Bytes max = 0;

    template <class See>
    static void each(See see) {
        see("time_s", &OccupancyBin::time_s, "Start of each bin.");
        see("max_bytes", &OccupancyBin::max, "Most bytes at a time in each bin.");
    }
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

/// Empty where there is no such switch.
template <class System>
Columns<OccupancyBin> occupancy(const System& system, network::SwitchIndex at) {
    const ethernet::Network* const network = system.transport().ethernet();
    const bool is_there = network != nullptr && at.value() < network->switches().size();
    return is_there && network->occupancy(at) ? columns(*network->occupancy(at))
                                              : Columns<OccupancyBin>{};
}
template <class System>
Columns<OccupancyBin> needed(const System& system, network::SwitchIndex at) {
    const ethernet::Network* const network = system.transport().ethernet();
    const bool is_there = network != nullptr && at.value() < network->switches().size();
    return is_there && network->least_buffer(at) ? columns(*network->least_buffer(at))
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

/// What every system can be asked.
template <class System>
void asked(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
    cls.def_prop_ro("now_s", &System::now, "Virtual time up to which was simulated.")
        .def("report", &report_of<System>, "What was counted.")
        .def("occupancy", &occupancy<System>, nb::arg("switch"),
             "The bytes in a switch of an Ethernet, in bins of the time after the warm-up.")
        .def("needed", &needed<System>, nb::arg("switch"),
             "The same of a shared memory in which the frames would just fit; empty where the "
             "switch has no shared memory.")
        .def("deadlock", &deadlock<System>,
             "Outputs (node, port) that wait for one another in a circle.")
        .def("broken_conservation", &broken_conservation<System>,
             "The conservation law that does not hold, in a sentence; empty if all do.");
}

template <class System>
void run_and_check(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
    cls.def("run", &run_in_slices<System>, nb::arg("progress").none() = nb::none(),
            "Simulates to the end of the run, or to Ctrl-C between two slices: then the system can "
            "be asked as at the end.");
    asked(cls);
}

}  // namespace daqloom::bindings

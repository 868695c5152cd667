// Systems on a simulated fabric, for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/errors.hpp"
#include "bindings/index.hpp"
#include "bindings/report.hpp"
#include "bindings/run.hpp"
#include "infiniband/fabric_report.hpp"

namespace daqloom::bindings {

template <class System, class Config>
std::unique_ptr<System> make_system(const Config& config) {
    return value_of(System::make(config));
}

/// The report of a protocol behind that of the fabric; Python sees it as one.
template <class Counted>
struct SystemReport : infiniband::FabricReport {
    Counted counted;
};

template <class System>
auto report_of(const System& system) {
    using Counted = decltype(system.report());
    return SystemReport<Counted>{system.fabric_report(), system.report()};
}

/// A class with the fields of FabricReport and of `Counted`.
template <class Counted>
auto bind_system_report(nanobind::module_& module, const char* name) {
    using Report = SystemReport<Counted>;
    auto cls = nanobind::class_<Report, infiniband::FabricReport>(
        module, name, "What was counted after the warm-up, by all nodes together.");
    bind_fields<Counted>(cls, [](const Report& self) -> const Counted& { return self.counted; });
    return cls;
}

template <class System>
std::vector<std::pair<infiniband::NodeIndex, infiniband::PortNumber>> deadlock(
    const System& system) {
    std::vector<std::pair<infiniband::NodeIndex, infiniband::PortNumber>> circle;
    for (const infiniband::End end : system.network().deadlock()) {
        circle.emplace_back(end.node, end.port);
    }
    return circle;
}

template <class System>
std::string broken_conservation(const System& system) {
    const auto conserved = system.check_conservation();
    return conserved ? std::string() : conserved.error().message;
}

/// What every system has: run, now_s, deadlock, broken_conservation.
template <class System>
void run_and_check(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
    cls.def("run", &run_in_slices<System>, nb::arg("progress").none() = nb::none(),
            "Simulates to the end of the run, or to Ctrl-C between two slices: then the system can "
            "be asked as at the end.")
        .def_prop_ro(
            "now_s", [](const System& self) { return self.now().seconds(); },
            "Virtual time up to which was simulated.")
        .def("deadlock", &deadlock<System>,
             "Outputs (node, port) that wait for one another in a circle.")
        .def("broken_conservation", &broken_conservation<System>,
             "The conservation law that does not hold, in a sentence; empty if all do.");
}

}  // namespace daqloom::bindings

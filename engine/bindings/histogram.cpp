// Distributions of durations, for Python.
#include "sim/histogram.hpp"

#include <nanobind/nanobind.h>

#include "bindings/report.hpp"
#include "bindings/systems.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using sim::Histogram;

void bind_histogram(nb::module_& module) {
    bind_columns<Histogram::Bucket>(module, "Buckets",
                                    "The buckets of a histogram that hold something, ascending.");
    nb::class_<Histogram>(module, "Histogram",
                          "A distribution of durations: minimum, mean and maximum are exact, "
                          "quantiles within 0.4 %. Where nothing was recorded, all are 0.")
        .def_prop_ro("count", &Histogram::count, "How many were recorded.")
        .def_prop_ro(
            "min_s", [](const Histogram& self) { return self.min().seconds(); }, "The shortest.")
        .def_prop_ro(
            "mean_s", [](const Histogram& self) { return self.mean_ps() * 1e-12; }, "The mean.")
        .def_prop_ro(
            "max_s", [](const Histogram& self) { return self.max().seconds(); }, "The longest.")
        .def(
            "quantile_s",
            [](const Histogram& self, double share) { return self.quantile(share).seconds(); },
            nb::arg("share"), "The shortest that a share of all, 0 to 1, does not exceed.")
        .def_prop_ro(
            "buckets",
            [](const Histogram& self) { return Columns<Histogram::Bucket>{self.buckets()}; },
            "How many were recorded by duration.");
}

}  // namespace daqloom::bindings

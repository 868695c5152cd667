// Distributions of durations, for Python.
#include "sim/histogram.hpp"
#include "bindings/casters.hpp"

#include "bindings/report.hpp"
#include "bindings/subjects.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using sim::Histogram;

namespace {

void bind_histogram(nb::module_& module) {
    bind_columns<Histogram::Bucket>(module, "Buckets",
                                    "Non-empty buckets of a histogram, ascending.");
    nb::class_<Histogram>(module, "Histogram",
                          "A distribution of durations: minimum, mean and maximum are exact, "
                          "quantiles within 0.4 %. All are 0 if nothing was recorded.")
        .def_prop_ro("count", &Histogram::count, "Number of durations recorded.")
        .def_prop_ro("min_s", &Histogram::min, "The shortest.")
        .def_prop_ro(
            "mean_s", [](const Histogram& self) { return self.mean_ps() * 1e-12; }, "The mean.")
        .def_prop_ro("max_s", &Histogram::max, "The longest.")
        .def("quantile_s", &Histogram::quantile, nb::arg("share"),
             "Shortest duration that a share of all, 0 to 1, does not exceed.")
        .def_prop_ro(
            "buckets",
            [](const Histogram& self) { return Columns<Histogram::Bucket>{self.buckets()}; },
            "Counts by duration.");
}

const Subject histogram(bind_histogram);

}  // namespace

}  // namespace daqloom::bindings

// What there is to build, for Python: delays, arrivals and sizes of events. Plain attributes; times
// in seconds (`_s`).
#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "bindings/casters.hpp"
#include "bindings/subjects.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/arrivals.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::DelayDistribution;
using base::Time;
using protocol::ArrivalsConfig;
using protocol::EventSizeConfig;

namespace {

/// Values with the times that each was seen, both above 0 in sum and at least 0.
void set_measured(DelayDistribution& delay, const std::vector<Time>& values,
                  const std::vector<double>& counts) {
    if (values.size() != counts.size()) {
        throw nb::value_error("as many counts are needed as values");
    }
    delay.values.clear();
    delay.seen_up_to.clear();
    double seen = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (counts[i] > 0) {
            delay.values.push_back(values[i]);
            delay.seen_up_to.push_back(seen += counts[i]);
        }
    }
    if (delay.values.empty()) {
        throw nb::value_error("no delay has been measured");
    }
    delay.kind = DelayDistribution::Kind::measured;
}

void bind_building(nb::module_& module) {
    nb::class_<DelayDistribution>(module, "Delay")
        .def(nb::init<>())
        .def_rw("kind", &DelayDistribution::kind)
        .def_rw("mean_s", &DelayDistribution::mean)
        .def_rw("spread_s", &DelayDistribution::spread)
        .def("set_measured", &set_measured, nb::arg("values_s"), nb::arg("counts"));
    nb::class_<ArrivalsConfig>(module, "Arrivals")
        .def_rw("kind", &ArrivalsConfig::kind)
        .def_rw("rate_hz", &ArrivalsConfig::rate_hz)
        .def_rw("bunch_spacing_s", &ArrivalsConfig::bunch_spacing)
        .def_rw("filling_scheme", &ArrivalsConfig::filling_scheme)
        .def_rw("simple_dead_time_bx", &ArrivalsConfig::simple_dead_time_bx)
        .def_rw("complex_dead_time", &ArrivalsConfig::complex_dead_time)
        .def_rw("trace_times_s", &ArrivalsConfig::trace_times);
    nb::class_<EventSizeConfig>(module, "EventSize")
        .def_rw("kind", &EventSizeConfig::kind)
        .def_rw("mean_bytes", &EventSizeConfig::mean)
        .def_rw("spread_bytes", &EventSizeConfig::spread_bytes)
        .def_rw("quantum_bytes", &EventSizeConfig::quantum)
        .def_rw("histogram", &EventSizeConfig::histogram);
}

const Subject building(bind_building);

}  // namespace

}  // namespace daqloom::bindings

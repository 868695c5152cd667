// Events and the rules of building them, for Python: delays, arrivals, sizes, protocols.
#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "bindings/rules.hpp"
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

/// Measured values with their counts; all at least 0, both sums above 0.
void set_measured(DelayDistribution& delay, const std::vector<Time>& values,
                  const std::vector<double>& counts) {
    if (values.size() != counts.size()) {
        throw nb::value_error("numbers of counts and values differ; give one count for each value");
    }
    delay.values.clear();
    delay.cumulative_weights.clear();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (counts[i] > 0) {
            delay.values.push_back(values[i]);
            delay.cumulative_weights.push_back(sum += counts[i]);
        }
    }
    if (delay.values.empty()) {
        throw nb::value_error("measured delays are empty; give a value with a count above 0");
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
    bind_config<ArrivalsConfig>(module, "Arrivals", "Arrival times of events.");
    bind_config<EventSizeConfig>(module, "EventSize", "Sizes of events.");
    bind_rules(module);
}

const Subject building(bind_building);

}  // namespace

}  // namespace daqloom::bindings

// What there is to build, for Python: delays, arrivals and sizes of events. Plain attributes; times
// in seconds (`_s`).
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "bindings/attributes.hpp"
#include "bindings/systems.hpp"
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
void set_measured(DelayDistribution& delay, const std::vector<double>& values_s,
                  const std::vector<double>& counts) {
    if (values_s.size() != counts.size()) {
        throw nb::value_error("as many counts are needed as values");
    }
    delay.values.clear();
    delay.seen_up_to.clear();
    double seen = 0;
    for (std::size_t i = 0; i < values_s.size(); ++i) {
        if (counts[i] > 0) {
            delay.values.push_back(Time::from_seconds(values_s[i]));
            delay.seen_up_to.push_back(seen += counts[i]);
        }
    }
    if (delay.values.empty()) {
        throw nb::value_error("no delay has been measured");
    }
    delay.kind = DelayDistribution::Kind::measured;
}

void bind_delays(nb::module_& module) {
    auto cls = nb::class_<DelayDistribution>(module, "Delay");
    cls.def(nb::init<>())
        .def_rw("kind", &DelayDistribution::kind)
        .def("set_measured", &set_measured, nb::arg("values_s"), nb::arg("counts"));
    seconds(cls, "mean_s", &DelayDistribution::mean);
    seconds(cls, "spread_s", &DelayDistribution::spread);
}

void bind_arrivals(nb::module_& module) {
    auto cls = nb::class_<ArrivalsConfig>(module, "Arrivals");
    cls.def_rw("kind", &ArrivalsConfig::kind)
        .def_rw("rate_hz", &ArrivalsConfig::rate_hz)
        .def_rw("filling_scheme", &ArrivalsConfig::filling_scheme)
        .def_rw("simple_dead_time_bx", &ArrivalsConfig::simple_dead_time_bx)
        .def_prop_rw(
            "complex_dead_time",
            [](const ArrivalsConfig& self) {
                std::vector<std::pair<std::uint32_t, std::uint32_t>> buckets;
                for (const auto& bucket : self.complex_dead_time) {
                    buckets.emplace_back(bucket.triggers, bucket.window_bx);
                }
                return buckets;
            },
            [](ArrivalsConfig& self,
               const std::vector<std::pair<std::uint32_t, std::uint32_t>>& buckets) {
                self.complex_dead_time.clear();
                for (const auto& [triggers, window_bx] : buckets) {
                    self.complex_dead_time.push_back({triggers, window_bx});
                }
            })
        .def_prop_rw(
            "trace_times_s",
            [](const ArrivalsConfig& self) {
                std::vector<double> times_s;
                for (const Time time : self.trace_times) {
                    times_s.push_back(time.seconds());
                }
                return times_s;
            },
            [](ArrivalsConfig& self, const std::vector<double>& times_s) {
                self.trace_times.clear();
                for (const double s : times_s) {
                    self.trace_times.push_back(Time::from_seconds(s));
                }
            });
    seconds(cls, "bunch_spacing_s", &ArrivalsConfig::bunch_spacing);
}

void bind_event_size(nb::module_& module) {
    using Value = std::pair<base::Bytes, double>;
    nb::class_<EventSizeConfig>(module, "EventSize")
        .def_rw("kind", &EventSizeConfig::kind)
        .def_rw("mean_bytes", &EventSizeConfig::mean)
        .def_rw("spread_bytes", &EventSizeConfig::spread_bytes)
        .def_rw("quantum_bytes", &EventSizeConfig::quantum)
        .def_prop_rw(
            "histogram",
            [](const EventSizeConfig& self) {
                std::vector<Value> values;
                for (const auto& bin : self.histogram) {
                    values.emplace_back(bin.lower, bin.weight);
                }
                return values;
            },
            [](EventSizeConfig& self, const std::vector<Value>& values) {
                self.histogram.clear();
                for (const auto& [bytes, weight] : values) {
                    self.histogram.push_back({bytes, bytes, weight});
                }
            });
}

}  // namespace

void bind_building(nb::module_& module) {
    bind_delays(module);
    bind_arrivals(module);
    bind_event_size(module);
}

}  // namespace daqloom::bindings

// RackConfig and its parts: plain attributes, times in seconds (`_s`), rates in bits per second.
#include "ethernet/rack_config.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "bindings/attributes.hpp"
#include "bindings/systems.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::BitRate;
using base::DelayDistribution;
using base::Time;
using namespace ethernet;
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

void bind_links(nb::module_& module) {
    auto link = nb::class_<LinkConfig>(module, "LinkConfig");
    bits_per_second(link, "rate_bps", &LinkConfig::rate);
    bits_per_second(link, "rate_limit_bps", &LinkConfig::rate_limit);
    seconds(link, "delay_s", &LinkConfig::delay);

    nb::class_<LossConfig>(module, "LossConfig")
        .def_rw("probability", &LossConfig::probability)
        .def_rw("period", &LossConfig::period);
}

void bind_switches(nb::module_& module) {
    nb::class_<SwitchConfig>(module, "SwitchConfig")
        .def_rw("model", &SwitchConfig::model)
        .def_rw("buffer_bytes", &SwitchConfig::buffer)
        .def_rw("dedicated_bytes", &SwitchConfig::dedicated)
        .def_rw("dedicated_ports", &SwitchConfig::dedicated_ports)
        .def_rw("alpha", &SwitchConfig::alpha)
        .def_rw("port_limit_bytes", &SwitchConfig::port_limit)
        .def_rw("cell_size_bytes", &SwitchConfig::cell_size)
        .def_rw("cell_metadata_bytes", &SwitchConfig::cell_metadata)
        .def_rw("queue_packets", &SwitchConfig::queue_packets)
        .def_rw("ecn_threshold_bytes", &SwitchConfig::ecn_threshold);
}

void bind_tcp(nb::module_& module) {
    auto tcp = nb::class_<TcpConfig>(module, "TcpConfig");
    tcp.def_rw("congestion", &TcpConfig::congestion)
        .def_rw("mss_bytes", &TcpConfig::mss)
        .def_rw("static_window_bytes", &TcpConfig::static_window)
        .def_rw("initial_window", &TcpConfig::initial_window)
        .def_rw("receive_window_bytes", &TcpConfig::receive_window)
        .def_rw("ack_every", &TcpConfig::ack_every)
        .def_rw("quick_acks", &TcpConfig::quick_acks)
        .def_rw("tso_burst_bytes", &TcpConfig::tso_burst)
        .def_rw("dctcp_gain", &TcpConfig::dctcp_gain)
        .def_rw("rack", &TcpConfig::rack)
        .def_rw("tail_loss_probe", &TcpConfig::tail_loss_probe)
        .def_rw("restart_after_idle", &TcpConfig::restart_after_idle)
        .def_rw("hystart", &TcpConfig::hystart)
        .def_rw("timestamps", &TcpConfig::timestamps);
    seconds(tcp, "delayed_ack_s", &TcpConfig::delayed_ack);
    seconds(tcp, "rto_min_s", &TcpConfig::rto_min);
    seconds(tcp, "rto_max_s", &TcpConfig::rto_max);
    seconds(tcp, "timer_tick_s", &TcpConfig::timer_tick);
}

}  // namespace

void bind_rack_config(nb::module_& module) {
    bind_delays(module);
    bind_arrivals(module);
    bind_event_size(module);
    bind_links(module);
    bind_switches(module);
    bind_tcp(module);
    auto rack = nb::class_<RackConfig>(module, "RackConfig");
    rack.def(nb::init<>())
        .def_rw("readouts", &RackConfig::readouts)
        .def_rw("builders", &RackConfig::builders)
        .def_rw("arrivals", &RackConfig::arrivals)
        .def_rw("event_size", &RackConfig::event_size)
        .def_rw("share", &RackConfig::share)
        .def_rw("assignment", &RackConfig::assignment)
        .def_rw("concurrent_events", &RackConfig::concurrent_events)
        .def_rw("outstanding_fragments", &RackConfig::outstanding_fragments)
        .def_rw("request_bytes", &RackConfig::request_size)
        .def_rw("response", &RackConfig::response)
        .def_rw("processing", &RackConfig::processing)
        .def_rw("readout_link", &RackConfig::readout_link)
        .def_rw("uplink", &RackConfig::uplink)
        .def_rw("uplinks", &RackConfig::uplinks)
        .def_rw("access_link", &RackConfig::access_link)
        .def_rw("core", &RackConfig::core)
        .def_rw("tor", &RackConfig::tor)
        .def_rw("tcp", &RackConfig::tcp)
        .def_rw("access_loss", &RackConfig::access_loss)
        .def_rw("seed", &RackConfig::seed)
        .def_rw("occupancy_bins", &RackConfig::occupancy_bins);
    seconds(rack, "duration_s", &RackConfig::duration);
    seconds(rack, "warmup_s", &RackConfig::warmup);
    seconds(rack, "readout_cost_per_message_s", &RackConfig::readout_cost_per_message);
    seconds(rack, "builder_cost_per_message_s", &RackConfig::builder_cost_per_message);
}

}  // namespace daqloom::bindings

// A run of the simulated rack, and what it counted.
#include "ethernet/rack.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "bindings/latency.hpp"
#include "bindings/run.hpp"
#include "bindings/systems.hpp"
#include "ethernet/recorder.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::Time;
using ethernet::LinkIndex;
using ethernet::Rack;
using ethernet::RackConfig;
using ethernet::RackReport;
using ethernet::Recorder;

namespace {

/// What Python holds: a rack and who records it. The recorder looks at the rack and goes first.
struct Run {
    std::unique_ptr<Rack> rack;
    std::unique_ptr<Recorder> recorder;
};

std::unique_ptr<Run> make(const RackConfig& config) {
    auto rack = Rack::make(config);
    if (!rack) {
        throw nb::value_error(rack.error().message.c_str());
    }
    return std::make_unique<Run>(Run{std::move(*rack), nullptr});
}

void record(Run& run, const std::map<std::string, std::string>& captures,
            const std::string& timeline) {
    run.recorder.reset();  // its files, should they be the same, are gone before the new ones come
    auto recorder = Recorder::make(*run.rack, captures, timeline);
    if (!recorder) {
        throw nb::value_error(recorder.error().message.c_str());
    }
    run.recorder = std::move(*recorder);
}

void finish_recording(Run& run) {
    if (const auto recorder = std::move(run.recorder)) {
        if (const auto closed = recorder->close(); !closed) {
            PyErr_SetString(PyExc_OSError, closed.error().message.c_str());
            throw nb::python_error();
        }
    }
}

double run(Run& run, const Progress& progress) {
    try {
        return run_in_slices(*run.rack, progress);
    } catch (...) {
        run.recorder.reset();  // whoever keeps the exception keeps the rack, but no half a file
        throw;
    }
}

nb::dict tcp_counts(const ethernet::TcpSenderCounters& tcp) {
    nb::dict counts;
    counts["fast_retransmissions"] = tcp.fast_retransmissions;
    counts["probe_retransmissions"] = tcp.probe_retransmissions;
    counts["timeout_retransmissions"] = tcp.timeout_retransmissions;
    counts["timeouts_whole_window"] = tcp.timeouts_whole_window;
    counts["timeouts_tail"] = tcp.timeouts_tail;
    counts["timeouts_retransmission"] = tcp.timeouts_retransmission;
    return counts;
}

nb::dict link_counts(const Rack& rack, const RackReport& report) {
    nb::dict links;
    for (LinkIndex i = 0; i < report.links.size(); ++i) {
        nb::dict link;
        link["frames"] = report.links[i].frames;
        link["ack_frames"] = report.links[i].ack_frames;
        link["wire_bytes"] = report.links[i].wire_bytes();
        link["rate_bps"] = rack.network().link(i).rate().bps;
        link["drops"] = report.drops_by_link[i];
        links[rack.network().link_name(i).c_str()] = link;
    }
    return links;
}

nb::dict occupancy(const sim::TimeSeries& series) {
    nb::list time_s;
    nb::list max_bytes;
    double start_s = series.start().seconds();
    for (const auto& bin : series.bins()) {
        time_s.append(start_s);
        max_bytes.append(bin.max);
        start_s += series.bin_width().seconds();
    }
    nb::dict columns;
    columns["time_s"] = time_s;
    columns["max_bytes"] = max_bytes;
    return columns;
}

nb::dict built(const Rack& rack) {
    nb::list events;
    nb::list latency_s;
    for (const auto& bin : rack.built_bins()) {
        events.append(bin.events);
        latency_s.append(bin.latency.seconds());
    }
    nb::dict columns;
    columns["events"] = events;
    columns["latency_s"] = latency_s;
    return columns;
}

nb::dict report(Run& run) {
    Rack& rack = *run.rack;
    const RackReport counted = rack.report();
    nb::dict all;
    all["window_s"] = counted.window.seconds();
    all["events_arrived"] = counted.events_arrived;
    all["events_built"] = counted.events_built;
    all["events_incomplete"] = counted.events_incomplete;
    all["events_waiting"] = counted.events_waiting;
    all["bytes_built"] = counted.bytes_built;
    all["drops"] = counted.drops;
    all["injected_losses"] = counted.injected_losses;
    all["marks"] = counted.marks;
    all["tcp"] = tcp_counts(counted.tcp);
    all["links"] = link_counts(rack, counted);
    all["core_peak_bytes"] = counted.core_peak;
    all["tor_peak_bytes"] = counted.tor_peak;
    all["tor_peak_at_s"] = counted.tor_peak_at.seconds();
    all["latency_s"] = latency_numbers(rack.latency());
    all["latency_histogram"] = latency_histogram(rack.latency());
    all["tor_occupancy"] = occupancy(*rack.network().occupancy(Rack::kTor));
    all["built"] = built(rack);
    all["sim_events"] = counted.total_sim_events;
    all["packet_hops"] = counted.total_packet_hops;
    all["ack_hops"] = counted.total_ack_hops;
    all["pending_peak"] = counted.total_pending_peak;
    all["fingerprint"] = rack.fingerprint();
    return all;
}

std::string broken_conservation(const Run& run) {
    const auto conserved = run.rack->check_conservation();
    return conserved ? std::string() : conserved.error().message;
}

}  // namespace

void bind_rack(nb::module_& module) {
    nb::class_<Run>(module, "Rack")
        .def(nb::new_(&make), nb::arg("config"))
        .def("record", &record, nb::arg("captures"), nb::arg("timeline"),
             "Records the run from here: frames by name of the link, pcapng; a timeline unless "
             "empty. The files appear with finish_recording(), and never if the run fails.")
        .def("finish_recording", &finish_recording, "Completes the files.")
        .def("run", &run, nb::arg("progress").none() = nb::none(),
             "Simulates to the end of the run; returns the processor seconds it took.")
        .def("report", &report, "What was counted, as a dictionary; times in seconds.")
        .def("broken_conservation", &broken_conservation,
             "The conservation law that does not hold, in a sentence; empty if all do.");
}

}  // namespace daqloom::bindings

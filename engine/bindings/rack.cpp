// A run of the simulated rack, and what it counted.
#include "ethernet/rack.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/run.hpp"
#include "bindings/systems.hpp"
#include "ethernet/recorder.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using base::Time;
using ethernet::BuiltBin;
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
    return std::make_unique<Run>(Run{value_of(Rack::make(config)), nullptr});
}

void record(Run& run, const std::map<std::string, std::string>& captures,
            const std::string& timeline) {
    run.recorder.reset();  // its files, should they be the same, are gone before the new ones come
    run.recorder = value_of(Recorder::make(*run.rack, captures, timeline));
}

void finish_recording(Run& run) {
    if (const auto recorder = std::move(run.recorder)) {
        value_of(recorder->close());
    }
}

void run(Run& run, const Progress& progress) {
    try {
        run_in_slices(*run.rack, progress);
    } catch (const nb::python_error& error) {
        if (!error.matches(PyExc_KeyboardInterrupt)) {
            run.recorder.reset();  // whoever keeps the exception keeps the rack, but no half a file
        }
        throw;
    } catch (...) {
        run.recorder.reset();
        throw;
    }
}

/// What a link carried after the warm-up.
struct LinkReport {
    std::uint64_t frames = 0;
    std::uint64_t ack_frames = 0;
    base::Bytes wire_bytes = 0;
    base::BitRate rate;
    std::uint64_t drops = 0;

    template <class See>
    static void each(See see) {
        using Link = LinkReport;
        see("frames", &Link::frames, "Frames delivered.");
        see("ack_frames", &Link::ack_frames, "Frames among them without payload.");
        see("wire_bytes", &Link::wire_bytes,
            "Bytes of wire that these frames took, preambles and gaps included.");
        see("rate", &Link::rate, "Rate of the link.");
        see("drops", &Link::drops, "Frames dropped in front of the link.");
    }
};

struct Links : Columns<LinkReport> {
    std::vector<std::string> names;
};

Links links(const Rack& rack, const RackReport& counted) {
    Links links;
    for (LinkIndex i = 0; i < counted.links.size(); ++i) {
        const ethernet::LinkCounters& link = counted.links[i];
        links.names.push_back(rack.network().link_name(i));
        links.rows.push_back({link.frames, link.ack_frames, link.wire_bytes(),
                              rack.network().link(i).rate(), counted.drops_by_link[i]});
    }
    return links;
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

Columns<OccupancyBin> occupancy(const sim::TimeSeries& series) {
    Columns<OccupancyBin> columns;
    double start_s = series.start().seconds();
    for (const auto& bin : series.bins()) {
        columns.rows.push_back({start_s, bin.max});
        start_s += series.bin_width().seconds();
    }
    return columns;
}

/// What Python sees of a run: the counters, and what goes with them.
struct Report {
    RackReport counted;
    Links links;
    sim::Histogram latency;
    Columns<OccupancyBin> tor_occupancy;
    std::optional<Columns<OccupancyBin>> tor_needed;
    std::optional<base::Bytes> tor_needed_bytes;
    Columns<BuiltBin> built;
    std::uint64_t fingerprint = 0;
};

Report report(Run& run) {
    Rack& rack = *run.rack;
    RackReport counted = rack.report();
    Report all{.counted = counted,
               .links = links(rack, counted),
               .latency = rack.latency(),
               .tor_occupancy = occupancy(*rack.network().occupancy(Rack::kTor)),
               .tor_needed = {},
               .tor_needed_bytes = {},
               .built = {rack.built_bins()},
               .fingerprint = rack.fingerprint()};
    if (const auto& least = rack.network().least_buffer(Rack::kTor)) {
        all.tor_needed = occupancy(*least);
        all.tor_needed_bytes = least->peak().value;
    }
    return all;
}

void bind_report(nb::module_& module) {
    bindings::bind_report<ethernet::TcpSenderCounters>(
        module, "TcpCounters", "Retransmissions and expired timers, all connections together.");
    bind_columns<LinkReport, 1, Links>(module, "Links", "What the links carried.")
        .def_ro("name", &Links::names, "Kind, number and direction, such as access.3.down.");
    bind_columns<OccupancyBin>(module, "Occupancy", "The bytes in a switch, in bins of time.");
    bind_columns<BuiltBin>(module, "BuiltBins", "Events built, in the bins of the occupancy.");
    auto cls = nb::class_<Report>(module, "RackReport", "What was counted after the warm-up.");
    bind_fields<RackReport>(cls,
                            [](const Report& self) -> const RackReport& { return self.counted; });
    cls.def_ro("links", &Report::links, "What each link carried.")
        .def_ro("latency", &Report::latency, "From the assignment of an event until it is built.")
        .def_ro("tor_occupancy", &Report::tor_occupancy, "Of the top-of-rack switch.")
        .def_ro("tor_needed", &Report::tor_needed,
                "The same of a shared memory in which the frames would just fit; None where the "
                "switch has no shared memory.")
        .def_ro("tor_needed_bytes", &Report::tor_needed_bytes, "The most of this at a time.")
        .def_ro("built", &Report::built, "Events built in the bins of the occupancy.")
        .def_ro("fingerprint", &Report::fingerprint,
                "A hash of all events that the simulator processed, in order.");
}

std::string broken_conservation(const Run& run) {
    const auto conserved = run.rack->check_conservation();
    return conserved ? std::string() : conserved.error().message;
}

}  // namespace

void bind_rack(nb::module_& module) {
    bind_report(module);
    nb::class_<Run>(module, "Rack")
        .def(nb::new_(&make), nb::arg("config"))
        .def("record", &record, nb::arg("captures"), nb::arg("timeline"),
             "Records the run from here: frames by name of the link, pcapng; a timeline unless "
             "empty. The files appear with finish_recording(), and never if the run fails.")
        .def("finish_recording", &finish_recording, "Completes the files.")
        .def("run", &run, nb::arg("progress").none() = nb::none(),
             "Simulates to the end of the run, or to Ctrl-C between two slices: then the rack, and "
             "its recording, can be asked as at the end.")
        .def_prop_ro(
            "now_s", [](const Run& self) { return self.rack->now().seconds(); },
            "Virtual time up to which was simulated.")
        .def("report", &report, "What was counted.")
        .def("broken_conservation", &broken_conservation,
             "The conservation law that does not hold, in a sentence; empty if all do.");
}

}  // namespace daqloom::bindings

// What the systems on a simulated fabric tell Python, all in the same way.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/units.hpp"
#include "bindings/latency.hpp"
#include "bindings/run.hpp"
#include "infiniband/network.hpp"

namespace daqloom::bindings {

template <class System, class Config>
std::unique_ptr<System> make_system(const Config& config) {
    auto system = System::make(config);
    if (!system) {
        throw nanobind::value_error(system.error().message.c_str());
    }
    return std::move(*system);
}

/// What the outputs at both ends of each cable have counted, over the whole run.
template <class System>
nanobind::list ports(const System& system) {
    nanobind::list all;
    for (const infiniband::Cable& cable : system.config().fabric.cables) {
        for (const infiniband::End end : {cable.a, cable.b}) {
            const infiniband::OutputCounters& counted = system.network().counters(end);
            nanobind::dict port;
            port["node"] = end.node;
            port["port"] = end.port;
            port["packets"] = counted.packets;
            port["bytes"] = counted.bytes;
            port["wait_credits_s"] = counted.wait_credits.seconds();
            port["wait_crossbar_s"] = counted.wait_crossbar.seconds();
            port["discards"] = counted.discards;
            nanobind::list bytes;
            nanobind::list wait_s;
            for (infiniband::VirtualLane lane = 0; lane < system.config().fabric.lanes; ++lane) {
                const infiniband::LaneCounters& of_lane = system.network().counters(end, lane);
                bytes.append(of_lane.bytes);
                wait_s.append(of_lane.wait.seconds());
            }
            port["lane_bytes"] = bytes;
            port["lane_wait_s"] = wait_s;
            all.append(port);
        }
    }
    return all;
}

/// What every report says, of the fabric and of what the run cost.
template <class System>
nanobind::dict report_of_fabric(const System& system) {
    nanobind::dict all;
    all["ports"] = ports(system);
    all["sim_events"] = system.sim_events();
    all["packet_hops"] = system.network().packet_hops();
    all["pending_peak"] = system.pending_peak();
    all["stalled"] = system.stalled();
    all["resent_for_nak"] = system.retries().resent_for_nak;
    all["resent_for_timeout"] = system.retries().resent_for_timeout;
    all["retry_timeouts"] = system.retries().timeouts;
    all["writes_failed"] = system.retries().writes_failed;
    all["write_latency_s"] = latency_numbers(system.write_latency());
    all["write_latency_histogram"] = latency_histogram(system.write_latency());
    return all;
}

/// What a report counts, by its names; times in seconds (`_s`).
template <class Report>
void add_counted(nanobind::dict& all, const Report& report) {
    Report::each([&](const char* name, auto member) {
        const auto value = report.*member;
        if constexpr (std::is_same_v<decltype(value), const base::Time>) {
            all[(std::string(name) + "_s").c_str()] = value.seconds();
        } else {
            all[name] = value;
        }
    });
}

template <class System>
nanobind::list deadlock(const System& system) {
    nanobind::list circle;
    for (const infiniband::End end : system.network().deadlock()) {
        circle.append(nanobind::make_tuple(end.node, end.port));
    }
    return circle;
}

template <class System>
std::string broken_conservation(const System& system) {
    const auto conserved = system.check_conservation();
    return conserved ? std::string() : conserved.error().message;
}

/// What every system has: run, deadlock, broken_conservation.
template <class System>
void run_and_check(nanobind::class_<System>& cls) {
    namespace nb = nanobind;
    cls.def("run", &run_in_slices<System>, nb::arg("progress").none() = nb::none(),
            "Simulates to the end of the run; returns the processor seconds it took.")
        .def("deadlock", &deadlock<System>,
             "Outputs (node, port) that wait for one another in a circle.")
        .def("broken_conservation", &broken_conservation<System>,
             "The conservation law that does not hold, in a sentence; empty if all do.");
}

}  // namespace daqloom::bindings

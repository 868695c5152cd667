// Outcome of a run of any system, for tests and fuzzing.
#pragma once

#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "infiniband/network.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

struct Outcome {
    std::uint64_t done = 0;
    std::uint64_t to_do = 0;
    base::Bytes bytes = 0;  ///< bytes beyond those of `to_do`
    std::uint64_t fingerprint = 0;
    std::uint64_t drops = 0;  ///< frames dropped by switches and by ports whose link is down
    std::uint64_t cut = 0;    ///< packets lost on a wire
    std::uint64_t resent = 0;
    std::uint64_t overtaken = 0;  ///< packets that came out of sequence
    std::uint64_t failed = 0;     ///< writes given up
    bool is_stalled = false;
    bool has_circle = false;  ///< whether outputs wait for each other in a circle
    std::string broken;       ///< conservation law that does not hold; empty if all hold
};

/// MEPs or events that a system has built, and their bytes.
struct EventCounts {
    std::uint64_t events = 0;
    base::Bytes bytes = 0;
};
template <class System>
EventCounts built_by(const System& system) {
    if constexpr (requires { system.report().meps_built; }) {
        return {system.report().meps_built, system.report().bytes_built};
    } else if constexpr (requires { system.report().events_built; }) {
        return {system.report().events_built, system.report().bytes_built};
    } else {
        return {};
    }
}

template <class System>
void count(System& system, Outcome& outcome) {
    const RunReport report = system.run_report();
    outcome.fingerprint = report.fingerprint;
    outcome.is_stalled = report.stalled;
    if (const auto& ethernet = report.network.ethernet) {
        outcome.drops += ethernet->drops + ethernet->injected_losses;
        outcome.cut += ethernet->cut;
    }
    if (const ethernet::Network* network = system.transport().ethernet()) {
        outcome.drops += network->unrouted();
    }
    if (const auto& fabric = report.network.infiniband) {
        outcome.drops += fabric->unrouted;
        for (const infiniband::PortReport& port : fabric->ports) {
            outcome.drops += port.dropped + port.discards;
            outcome.cut += port.cut;
        }
        outcome.has_circle = !system.transport().infiniband()->deadlock().empty();
    }
    if (const auto& rdma = report.network.rdma) {
        outcome.resent += rdma->resent_for_nak + rdma->resent_for_timeout;
        outcome.overtaken += rdma->out_of_sequence;
        outcome.failed += rdma->writes_failed;
    }
    if (const auto& tcp = report.network.tcp) {
        outcome.resent +=
            tcp->fast_retransmissions + tcp->probe_retransmissions + tcp->timeout_retransmissions;
    }
}

/// Runs until `until` in `pieces` pieces; conservation laws must hold after each of them.
template <class System>
void run(System& system, base::Time until, int pieces, Outcome& outcome) {
    const base::Time from = system.now();
    for (int piece = 1; piece <= pieces; ++piece) {
        system.run(from + (until - from) * piece / pieces);
        const auto conserved = system.check_conservation();
        if (!conserved && outcome.broken.empty()) {
            outcome.broken = conserved.error().message;
        }
    }
}

}  // namespace daqloom::systems

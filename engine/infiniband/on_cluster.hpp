// The queries that every system on a cluster answers, for any protocol.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "infiniband/fabric_report.hpp"
#include "infiniband/hosts.hpp"
#include "infiniband/network.hpp"
#include "sim/histogram.hpp"

namespace daqloom::infiniband {

/// `System` derives from it, befriends it, and has a `config_` and a `cluster_` that it drives.
template <class System>
class OnCluster {
  public:
    /// Runs until `until`, or until no event is left.
    void run(base::Time until) { self().cluster_->run(until, self()); }

    [[nodiscard]] base::Time now() const { return self().cluster_->now(); }
    [[nodiscard]] const auto& config() const { return self().config_; }
    [[nodiscard]] const Network& network() const { return self().cluster_->network(); }
    [[nodiscard]] const RetryCounters& retries() const { return self().cluster_->retries(); }
    [[nodiscard]] const sim::Histogram& write_latency() const {
        return self().cluster_->write_latency();
    }
    [[nodiscard]] std::uint64_t sim_events() const { return self().cluster_->sim_events(); }
    [[nodiscard]] std::uint64_t fingerprint() const { return self().cluster_->fingerprint(); }
    [[nodiscard]] std::size_t pending_peak() const { return self().cluster_->events().peak_size(); }
    /// What the report of every protocol has.
    [[nodiscard]] FabricReport fabric_report() const {
        FabricReport report;
        report.sim_events = sim_events();
        report.fingerprint = fingerprint();
        report.packet_hops = network().packet_hops();
        report.pending_peak = pending_peak();
        report.stalled = self().stalled();
        report.retries = retries();
        report.write_latency = write_latency();
        report.lanes_of_port = config().fabric.lanes;
        for (const Cable& cable : config().fabric.cables) {
            for (const End end : {cable.a, cable.b}) {
                report.ports.push_back({network().counters(end), end.node, end.port});
                for (const VirtualLane lane :
                     base::IndexRange<VirtualLane>(config().fabric.lanes)) {
                    report.lanes.push_back(network().counters(end, lane));
                }
            }
        }
        return report;
    }

  private:
    friend System;
    OnCluster() = default;

    [[nodiscard]] System& self() { return static_cast<System&>(*this); }
    [[nodiscard]] const System& self() const { return static_cast<const System&>(*this); }
};

}  // namespace daqloom::infiniband

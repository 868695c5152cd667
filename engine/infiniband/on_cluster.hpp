// What every system on a cluster can be asked, whatever its protocol.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "infiniband/hosts.hpp"
#include "infiniband/network.hpp"
#include "sim/histogram.hpp"

namespace daqloom::infiniband {

/// `System` derives from it, befriends it, and has a `config_` and a `cluster_` that it drives.
template <class System>
class OnCluster {
  public:
    /// Goes on until `until`, or until nothing can happen any more.
    void run(base::Time until) { self().cluster_->run(until, self()); }

    [[nodiscard]] base::Time now() const { return self().cluster_->now(); }
    [[nodiscard]] const auto& config() const { return self().config_; }
    [[nodiscard]] const Network& network() const { return self().cluster_->network(); }
    [[nodiscard]] const RetryCounters& retries() const { return self().cluster_->retries(); }
    [[nodiscard]] const sim::Histogram& write_latency() const {
        return self().cluster_->write_latency();
    }
    [[nodiscard]] std::uint64_t sim_events() const { return self().cluster_->sim_events(); }
    [[nodiscard]] std::size_t pending_peak() const { return self().cluster_->events().peak_size(); }

  private:
    friend System;
    OnCluster() = default;

    [[nodiscard]] System& self() { return static_cast<System&>(*this); }
    [[nodiscard]] const System& self() const { return static_cast<const System&>(*this); }
};

}  // namespace daqloom::infiniband

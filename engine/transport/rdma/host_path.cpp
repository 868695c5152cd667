#include "transport/rdma/host_path.hpp"

#include <algorithm>

namespace daqloom::transport {

namespace {

base::WireClock clock_of(base::BitRate rate) {
    return base::WireClock(rate.bps > 0 ? rate : base::gigabits_per_second(1));
}

}  // namespace

HostPath::HostPath(const HostPathConfig& config)
    : pcie_(clock_of(config.pcie_rate)),
      memory_(clock_of(config.memory_rate)),
      has_pcie_(config.pcie_rate.bps > 0),
      passes_(config.memory_rate.bps > 0 ? config.memory_passes : 0) {}

base::Time HostPath::pass(base::Time& way, Host& host, base::Bytes bytes, base::Time now) const {
    way = std::max(way, now) + (has_pcie_ ? pcie_(bytes) : base::Time::zero());
    host.memory = std::max(host.memory, now) + memory_(bytes * passes_);
    return std::max(way, host.memory);
}

}  // namespace daqloom::transport

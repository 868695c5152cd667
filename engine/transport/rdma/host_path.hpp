// The path of bytes between a host's memory and the wire: the adapter's PCIe, and the memory.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::transport {

struct HostPathConfig {
    DAQLOOM_FIELDS(
        HostPathConfig, (base::BitRate, pcie_rate, "Rate of the adapter, each way; 0: no limit."),
        (base::BitRate, memory_rate, "Rate of a host's memory, all traffic together; 0: no limit."),
        (std::uint32_t, memory_passes,
         "Times that what is sent crosses memory, and what is received: written by its source and "
         "fetched; delivered and read by what comes next.",
         2))
};

/// Serves transfers in order: one direction of the adapter's PCIe, and the memory once per pass.
class HostPath {
  public:
    explicit HostPath(const HostPathConfig& config);

    /// Times at which the parts of one host's path become free.
    struct Host {
        base::Time out;
        base::Time in;
        base::Time memory;
    };

    [[nodiscard]] bool is_limited() const { return has_pcie_ || passes_ > 0; }
    /// Time at which a fetch of `bytes` from memory ends, if requested now.
    base::Time fetch(Host& host, base::Bytes bytes, base::Time now) const {
        return pass(host.out, host, bytes, now);
    }
    /// Time at which a delivery of `bytes` to memory ends, if the bytes arrive now.
    base::Time deliver(Host& host, base::Bytes bytes, base::Time now) const {
        return pass(host.in, host, bytes, now);
    }

  private:
    base::Time pass(base::Time& way, Host& host, base::Bytes bytes, base::Time now) const;

    base::WireClock pcie_;
    base::WireClock memory_;
    bool has_pcie_;
    base::Bytes passes_;  ///< 0: no limit
};

}  // namespace daqloom::transport

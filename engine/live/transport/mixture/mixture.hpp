// Two transports in one run: shared memory between the units of a host, and another transport
// between hosts.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "live/transport/shm/shm.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// Units with the same identity reach each other through shared memory.
using HostId = std::array<std::byte, 16>;

/// Identity of this process's host: the boot of its kernel, and its network namespace, in which the
/// sockets of shared memory have their names.
base::expected<HostId> host_id();

class MixedTransport final : public Transport {
  public:
    /// `between`: transport between hosts, made for the same configuration.
    static base::expected<std::unique_ptr<MixedTransport>> create(
        const TransportConfig& config, std::unique_ptr<Transport> between, const HostId& host);

    [[nodiscard]] std::vector<std::byte> address() const override;
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override;
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override {
        return transport_to(to).send(to, bytes);
    }
    [[nodiscard]] bool write(const Write& write) override {
        return transport_to(write.to).write(write);
    }
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override;
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }
    [[nodiscard]] std::vector<ConnectionCounts> connections() const override {
        return between_->connections();
    }

  private:
    MixedTransport(const TransportConfig& config, std::unique_ptr<ShmTransport> within,
                   std::unique_ptr<Transport> between, const HostId& host);
    [[nodiscard]] Transport& transport_to(UnitIndex unit);
    void count();

    HostId host_;
    std::unique_ptr<ShmTransport> within_;
    std::unique_ptr<Transport> between_;
    base::Table<UnitIndex, bool> is_here_;
    TransportCounters counters_;
};

}  // namespace daqloom::live

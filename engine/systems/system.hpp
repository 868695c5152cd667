// What every simulated system is made of: nodes on the hosts of a network, and a transport over it.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "hosts/path.hpp"
#include "infiniband/fabric_config.hpp"
#include "network/graph.hpp"
#include "sim/histogram.hpp"
#include "systems/nodes.hpp"
#include "transport/rdma/config.hpp"
#include "transport/report.hpp"
#include "transport/tcp/config.hpp"
#include "transport/transport.hpp"

namespace daqloom::systems {

struct SystemConfig : NodesConfig {
    std::variant<ethernet::NetworkConfig, infiniband::FabricConfig> network;
    std::variant<transport::TcpConfig, transport::RdmaConfig> transport;
    hosts::PathConfig path;     ///< of every host, for RDMA
    std::uint32_t bins = 4000;  ///< of what is recorded over time
};

[[nodiscard]] const network::Graph& graph_of(const SystemConfig& config);

/// Fails with one sentence if the transport cannot run over the network, or not for so long.
[[nodiscard]] base::expected<std::unique_ptr<transport::Transport>> make_transport(
    const SystemConfig& config);

/// What every system reports, whatever its protocol.
struct RunReport {
    std::uint64_t sim_events = 0;
    std::uint64_t fingerprint = 0;
    std::uint64_t pending_peak = 0;
    bool stalled = false;
    sim::Histogram write_latency;
    transport::Report network;

    /// Calls see(name, member, meaning) for each field but that of the network.
    template <class See>
    static void each(See see) {
        using Report = RunReport;
        see("sim_events", &Report::sim_events, "Events that the simulator processed.");
        see("fingerprint", &Report::fingerprint,
            "A hash of all events that the simulator processed, in order.");
        see("pending_peak", &Report::pending_peak, "Most events pending at a time.");
        see("stalled", &Report::stalled,
            "Whether units wait at the end for what no event will bring.");
        see("write_latency", &Report::write_latency,
            "From the post of data to another node until the sender has the completion, after the "
            "warm-up.");
    }
};

/// A system whose units write letters with `Content`.
template <class Content>
class SystemOf : protected Nodes<Content>::Driver {
  public:
    SystemOf(const SystemOf&) = delete;
    SystemOf& operator=(const SystemOf&) = delete;

    /// Runs until `until`, or until no event is left.
    void run(base::Time until) { nodes_->run(until); }

    [[nodiscard]] base::Time now() const { return nodes_->now(); }
    [[nodiscard]] transport::Transport& transport() { return nodes_->transport(); }
    [[nodiscard]] const transport::Transport& transport() const { return nodes_->transport(); }
    [[nodiscard]] const sim::Histogram& write_latency() const { return nodes_->write_latency(); }
    [[nodiscard]] std::uint64_t sim_events() const { return transport().sim_events(); }
    [[nodiscard]] std::uint64_t fingerprint() const { return transport().fingerprint(); }
    /// Units wait for what no event will bring.
    [[nodiscard]] virtual bool stalled() const = 0;
    [[nodiscard]] RunReport run_report() {
        return {.sim_events = transport().sim_events(),
                .fingerprint = fingerprint(),
                .pending_peak = transport().events().peak_size(),
                .stalled = stalled(),
                .write_latency = write_latency(),
                .network = transport().report()};
    }

  protected:
    using Letters = Nodes<Content>;
    using Letter = typename Letters::Letter;

    SystemOf() = default;
    ~SystemOf() override = default;

    base::expected<void> place(const SystemConfig& config, const std::vector<NodeIndex>& hosts) {
        auto transport = make_transport(config);
        if (!transport) {
            return tl::unexpected(transport.error());
        }
        (*transport)->end_at(config.duration);
        auto nodes =
            Letters::make(config, std::move(*transport), graph_of(config).hosts, hosts, *this);
        if (!nodes) {
            return tl::unexpected(nodes.error());
        }
        nodes_ = std::move(*nodes);
        return {};
    }
    [[nodiscard]] Letters& nodes() { return *nodes_; }
    [[nodiscard]] const Letters& nodes() const { return *nodes_; }

  private:
    std::unique_ptr<Letters> nodes_;
};

}  // namespace daqloom::systems

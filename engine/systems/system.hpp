// Common parts of every simulated system: nodes on the hosts of a network, a transport over it, and
// flows between the nodes, if any.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "ethernet/network_config.hpp"
#include "hosts/nodes.hpp"
#include "infiniband/fabric_config.hpp"
#include "network/graph.hpp"
#include "sim/histogram.hpp"
#include "systems/flow_traffic.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/report.hpp"
#include "transport/tcp/config.hpp"
#include "transport/transport.hpp"

namespace daqloom::systems {

using hosts::NodeChange;
using hosts::Nodes;
using hosts::NodesConfig;
using network::NodeIndex;
using transport::ServiceLevel;

struct SystemConfig : NodesConfig, FlowsConfig {
    using Network = std::variant<ethernet::NetworkConfig, infiniband::FabricConfig>;
    using Transport = std::variant<transport::TcpConfig, transport::RdmaConfig>;
    DAQLOOM_FIELDS(SystemConfig, (Network, network, "Network of all hosts."),
                   (Transport, transport, "Transport over the network."),
                   (transport::HostPathConfig, path, "Way of bytes through every host, for RDMA."))
    std::uint32_t bins = 4000;  ///< time bins of recorded quantities
};

[[nodiscard]] const network::Graph& graph_of(const SystemConfig& config);

/// Whether messages have service levels beyond 0.
[[nodiscard]] bool has_levels(const SystemConfig& config);

/// Transport over the network. Fails if the two do not fit, or if the run is no longer than its
/// warm-up.
[[nodiscard]] base::expected<std::unique_ptr<transport::Transport>> make_transport(
    const SystemConfig& config);

/// Report common to all systems, whatever the protocol.
struct RunReport {
    DAQLOOM_FIELDS(RunReport, (std::uint64_t, sim_events, "Events that the simulator processed."),
                   (std::uint64_t, fingerprint,
                    "A hash of all events that the simulator processed, in order."),
                   (std::uint64_t, pending_peak, "Most events pending at a time."),
                   (bool, stalled,
                    "Whether units wait at the end for input that no event will bring."),
                   (sim::Histogram, write_latency,
                    "From the post of data to another node until the sender has the completion, "
                    "after the warm-up."))

    std::vector<FlowCount> flows;
    std::vector<sim::Histogram> flow_latencies;
    std::vector<sim::Histogram> level_latencies;  ///< by service level; empty if all use level 0
    transport::Report network;
};

/// A system whose units send messages with `Content`.
template <class Content>
class SystemOf : protected Nodes<Content>::Driver, private FlowTraffic::Carrier {
  public:
    SystemOf(const SystemOf&) = delete;
    SystemOf& operator=(const SystemOf&) = delete;

    /// Runs until `until`, or until no event is left.
    void run(base::Time until) { nodes_->run(until); }

    [[nodiscard]] base::Time now() const { return nodes_->now(); }
    [[nodiscard]] transport::Transport& transport() { return nodes_->transport(); }
    [[nodiscard]] const transport::Transport& transport() const { return nodes_->transport(); }
    [[nodiscard]] FlowTraffic& flows() { return flows_; }
    [[nodiscard]] const FlowTraffic& flows() const { return flows_; }
    /// Latency of the units' writes.
    [[nodiscard]] virtual const sim::Histogram& write_latency() const {
        return nodes_->write_latency();
    }
    [[nodiscard]] std::uint64_t sim_events() const { return transport().sim_events(); }
    [[nodiscard]] std::uint64_t fingerprint() const { return transport().fingerprint(); }
    /// Whether units wait for input that no event will bring.
    [[nodiscard]] virtual bool stalled() const = 0;
    [[nodiscard]] RunReport run_report() {
        transport::Report network = transport().report();
        network.memory.messages += nodes_->memory();
        return {.sim_events = transport().sim_events(),
                .fingerprint = fingerprint(),
                .pending_peak = transport().events().peak_size(),
                .stalled = stalled(),
                .write_latency = write_latency(),
                .flows = flows_.counted(),
                .flow_latencies = flows_.latencies(),
                .level_latencies = nodes_->level_latencies(),
                .network = std::move(network)};
    }

  protected:
    using SystemNodes = Nodes<Content>;
    using Message = typename SystemNodes::Message;

    SystemOf() = default;
    ~SystemOf() override = default;

    /// A node on each of the `hosts` of units, in their order, then on the other hosts of flows.
    /// `flow_due`: kind of the events at which flows post messages.
    base::expected<void> place(const SystemConfig& config, std::vector<NodeIndex> hosts,
                               std::uint32_t flow_due) {
        DAQLOOM_TRY(transport, make_transport(config));
        transport->end_at(config.duration);
        flow_due_ = flow_due;
        flow_node_ = nodes_of_flows(config, hosts);
        DAQLOOM_TRY(nodes, SystemNodes::make(config, std::move(transport), graph_of(config).hosts,
                                             hosts, *this));
        nodes_ = std::move(nodes);
        if (has_levels(config)) {
            nodes_->record_levels();
        }
        DAQLOOM_TRY(flows,
                    FlowTraffic::make(config, config.seed, graph_of(config), this->transport()));
        flows_ = std::move(flows);
        return {};
    }
    /// Starts the flows; to be called when the units have begun.
    void start_flows() { flows_.start(*this); }
    void on_flow_due(const sim::Event& event) { flows_.on_due(event.index, event.at, *this); }
    /// Starts the counting of the transport and of flows.
    void begin_counting(const SystemConfig& config, base::Time now) {
        transport().begin_counting(now, config.duration, config.bins);
        flows_.begin_counting();
    }
    /// Checks that transport and flows conserve their messages, and that units expected all inputs.
    [[nodiscard]] base::expected<void> check_books(std::uint64_t unexpected = 0) const {
        DAQLOOM_CHECK(transport().check_conservation());
        if (auto books = flows_.check_conservation(); !books || unexpected == 0) {
            return books;
        }
        return base::defect(
            fmt::format("{} inputs came to units that did not expect them", unexpected));
    }
    [[nodiscard]] SystemNodes& nodes() { return *nodes_; }
    [[nodiscard]] const SystemNodes& nodes() const { return *nodes_; }

  private:
    /// Node of each host in `flow_hosts`. Hosts without a node are appended to `hosts`.
    static std::vector<std::uint32_t> nodes_of_flows(const FlowsConfig& config,
                                                     std::vector<NodeIndex>& hosts) {
        std::unordered_map<NodeIndex, std::uint32_t> node_on;
        if (!config.flow_hosts.empty()) {
            for (const NodeIndex host : hosts) {
                node_on.emplace(host, static_cast<std::uint32_t>(node_on.size()));
            }
        }
        std::vector<std::uint32_t> nodes;
        for (const NodeIndex host : config.flow_hosts) {
            const auto found = node_on.find(host);
            if (found == node_on.end()) {
                nodes.push_back(static_cast<std::uint32_t>(hosts.size()));
                hosts.push_back(host);
            } else {
                nodes.push_back(found->second);
            }
        }
        return nodes;
    }

    void carry(const FlowTraffic::Message& message, base::Time now) final {
        nodes_->send({.from = flow_node_[message.from],
                      .to = flow_node_[message.to],
                      .bytes = message.bytes,
                      .is_data = true,
                      .completes = true,
                      .is_datagram = message.is_datagram,
                      .service_level = message.service_level},
                     now, message.number + 1);
    }
    void wake(std::uint32_t sender, base::Time at) final {
        nodes_->events().push({at, flow_due_, sender});
    }
    void on_flow_received(std::uint32_t message, base::Time now) final {
        flows_.on_received(message, now);
    }
    void on_flow_written(std::uint32_t message, base::Time now) final {
        flows_.on_written(message, now, *this);
    }

    void on_flow_lost(std::uint32_t message) final { flows_.on_lost(message); }

    std::unique_ptr<SystemNodes> nodes_;
    FlowTraffic flows_;
    std::vector<std::uint32_t> flow_node_;  ///< node of each host in `flow_hosts`
    std::uint32_t flow_due_ = 0;
};

}  // namespace daqloom::systems

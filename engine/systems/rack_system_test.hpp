// For tests, benchmarks and fuzzing: pull building on one rack, described in few numbers.
//
//   readout 0 ──┐                                     ┌── builder 0
//   readout 1 ──┤ core ══ uplink(s) ══ top of rack ───┤── builder 1
//      …      ──┘                                     └──    …
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ethernet/network.hpp"
#include "systems/pull_system.hpp"
#include "systems/recording/recorder.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::systems {

using ethernet::BufferModel;
using ethernet::EndpointIndex;
using ethernet::Frame;
using ethernet::kFrameOverhead;
using ethernet::kMinimumFrame;
using ethernet::kWireOverhead;
using ethernet::LinkConfig;
using ethernet::LinkIndex;
using ethernet::SwitchConfig;
using transport::CongestionControl;
using transport::TcpConfig;

struct RackConfig {
    std::uint32_t readouts = 1;
    std::uint32_t builders = 1;

    protocol::ArrivalsConfig arrivals;
    protocol::EventSizeConfig event_size;
    std::vector<double> share;
    protocol::Assignment assignment = protocol::Assignment::round_robin;
    std::uint32_t concurrent_events = 32;
    std::uint32_t outstanding_fragments = 0;
    base::Bytes request_size = 100;
    bool manager_is_networked = false;
    base::DelayDistribution response;
    std::vector<base::DelayDistribution> processing;
    base::Time readout_cost_per_message;
    base::Time builder_cost_per_message;
    base::BitRate send_rate;
    base::BitRate receive_rate;
    std::uint32_t shared_cores = 0;

    LinkConfig readout_link;
    LinkConfig uplink;
    std::uint32_t uplinks = 1;
    LinkConfig access_link;
    SwitchConfig core;
    SwitchConfig tor;
    TcpConfig tcp;
    ethernet::LossConfig access_loss;  ///< on the way to the builders; its link does not count

    base::Time duration;
    base::Time warmup;
    std::uint64_t seed = 1;
    std::uint32_t occupancy_bins = 4000;
};

/// The laboratory of the ATLAS study: 48 readout units, 32 builders, 800 Gb/s into the rack and 25
/// Gb/s to each builder; 5 MB at 12 kHz. Infinite buffers; 10 ms of virtual time, 4 of them
/// warm-up.
inline RackConfig atlas_lab() {
    RackConfig config;
    config.readouts = 48;
    config.builders = 32;
    config.arrivals.rate_hz = 12e3;
    config.event_size.mean = 5'000'000;
    const base::Time delay = base::microseconds(1);
    config.readout_link = {base::gigabits_per_second(100), delay, {}};
    config.uplink = {base::gigabits_per_second(800), delay, {}};
    config.access_link = {base::gigabits_per_second(25), delay, {}};
    config.duration = base::milliseconds(10);
    config.warmup = base::milliseconds(4);
    return config;
}

/// Hosts are the readout units, then the builder units; switch 0 is the core, 1 the top of rack.
inline ethernet::NetworkConfig network_of(const RackConfig& rack) {
    using network::End;
    using network::NodeIndex;
    using network::PortNumber;
    ethernet::NetworkConfig config;
    network::Graph& graph = config;
    graph.hosts = rack.readouts + rack.builders;
    graph.switch_ports = {static_cast<PortNumber>(rack.readouts + rack.uplinks),
                          static_cast<PortNumber>(rack.uplinks + rack.builders)};
    const auto end = [](std::uint32_t node, std::uint32_t port) {
        return End{NodeIndex(node), static_cast<PortNumber>(port)};
    };
    const std::uint32_t core = graph.hosts;
    const std::uint32_t tor = graph.hosts + 1;
    const auto cable = [&](End a, End b, const LinkConfig& link, const std::string& name,
                           bool is_up) {
        graph.cables.push_back({a, b, link.rate, link.delay});
        config.buckets.push_back(link.bucket);
        config.link_names.push_back(fmt::format("{}.{}", name, is_up ? "up" : "down"));
        config.link_names.push_back(fmt::format("{}.{}", name, is_up ? "down" : "up"));
    };
    for (std::uint32_t i = 0; i < rack.readouts; ++i) {
        cable(end(i, 1), end(core, i + 1), rack.readout_link, fmt::format("source.{}", i), true);
    }
    for (std::uint32_t i = 0; i < rack.uplinks; ++i) {
        cable(end(core, rack.readouts + i + 1), end(tor, i + 1), rack.uplink,
              fmt::format("uplink.{}", i), false);
    }
    for (std::uint32_t i = 0; i < rack.builders; ++i) {
        cable(end(tor, rack.uplinks + i + 1), end(rack.readouts + i, 1), rack.access_link,
              fmt::format("access.{}", i), false);
    }
    std::vector<PortNumber> down;
    std::vector<PortNumber> up;
    for (std::uint32_t i = 0; i < rack.uplinks; ++i) {
        down.push_back(static_cast<PortNumber>(rack.readouts + i + 1));
        up.push_back(static_cast<PortNumber>(i + 1));
    }
    graph.groups = {{NodeIndex(core), down}, {NodeIndex(tor), up}};
    for (std::uint32_t host = 0; host < graph.hosts; ++host) {
        graph.forwarding.push_back(static_cast<network::Route>(
            host < rack.readouts ? host + 1 : graph.switch_ports[0] + 1U));
    }
    for (std::uint32_t host = 0; host < graph.hosts; ++host) {
        graph.forwarding.push_back(static_cast<network::Route>(
            host < rack.readouts ? graph.switch_ports[1] + 1U
                                 : rack.uplinks + host - rack.readouts + 1));
    }
    config.switches = {rack.core, rack.tor};
    for (std::uint32_t i = 0; i < rack.builders; ++i) {
        const LinkIndex link(2 * (rack.readouts + rack.uplinks + i));
        if (rack.access_loss.probability != 0 || rack.access_loss.period != 0) {
            config.losses.push_back({link, rack.access_loss.probability, rack.access_loss.period});
        }
    }
    config.seed = rack.seed;
    return config;
}

inline PullSystemConfig pull_of(const RackConfig& rack) {
    PullSystemConfig config;
    config.network = network_of(rack);
    config.transport = rack.tcp;
    for (std::uint32_t i = 0; i < rack.readouts + rack.builders; ++i) {
        (i < rack.readouts ? config.readouts : config.builders).push_back(network::NodeIndex(i));
    }
    config.arrivals = rack.arrivals;
    config.event_size = rack.event_size;
    config.share = rack.share;
    config.assignment = rack.assignment;
    config.concurrent_events = rack.concurrent_events;
    config.outstanding_fragments = rack.outstanding_fragments;
    config.request_size = rack.request_size;
    config.manager_is_networked = rack.manager_is_networked;
    config.response = rack.response;
    config.processing = rack.processing;
    config.readout_cost_per_message = rack.readout_cost_per_message;
    config.builder_cost_per_message = rack.builder_cost_per_message;
    config.send_rate = rack.send_rate;
    config.receive_rate = rack.receive_rate;
    config.shared_cores = rack.shared_cores;
    config.duration = rack.duration;
    config.warmup = rack.warmup;
    config.seed = rack.seed;
    config.bins = rack.occupancy_bins;
    return config;
}

/// All counts of a system on a rack.
struct RackReport : PullReport, ethernet::Report {
    transport::TcpSenderCounters tcp;
    base::Bytes core_peak = 0;
    base::Bytes tor_peak = 0;
    base::Time tor_peak_at;
    std::uint64_t total_sim_events = 0;
    std::uint64_t total_packet_hops = 0;
    std::uint64_t total_ack_hops = 0;
    std::uint64_t total_pending_peak = 0;
};

class Rack {
  public:
    static base::expected<std::unique_ptr<Rack>> make(const RackConfig& config) {
        auto system = PullSystem::make(pull_of(config));
        if (!system) {
            return tl::unexpected(system.error());
        }
        return std::unique_ptr<Rack>(new Rack(config, std::move(*system)));
    }

    void run(base::Time until) { system_->run(std::min(until, config_.duration)); }
    [[nodiscard]] base::Time now() const { return system_->now(); }
    [[nodiscard]] RackReport report() {
        const RunReport run = system_->run_report();
        RackReport all;
        static_cast<PullReport&>(all) = system_->report();
        static_cast<ethernet::Report&>(all) = *run.network.ethernet;
        all.tcp = *run.network.tcp;
        if (!all.switches.empty()) {
            all.core_peak = all.switches[0].peak_bytes;
            all.tor_peak = all.switches[1].peak_bytes;
            all.tor_peak_at = all.switches[1].peak_at;
        }
        all.total_sim_events = run.sim_events;
        all.total_packet_hops = run.network.packet_hops;
        all.total_ack_hops = run.network.ack_hops;
        all.total_pending_peak = run.pending_peak;
        return all;
    }
    [[nodiscard]] const sim::Histogram& latency() const { return system_->latency(); }
    [[nodiscard]] const std::vector<BuiltBin>& built_bins() const { return system_->built_bins(); }
    [[nodiscard]] const RackConfig& config() const { return config_; }
    [[nodiscard]] PullSystem& system() { return *system_; }
    [[nodiscard]] const ethernet::Network& network() const { return stack().network(); }
    [[nodiscard]] const transport::TcpEndpoints& hosts() const { return stack().endpoints(); }
    [[nodiscard]] base::expected<void> check_conservation() const {
        return system_->check_conservation();
    }
    [[nodiscard]] std::uint64_t fingerprint() const { return system_->fingerprint(); }
    void observe(ethernet::Observer* frames, transport::TimeoutObserver* timeouts,
                 EventObserver* events) {
        stack().observe(frames, timeouts);
        system_->observe(events);
    }

    [[nodiscard]] LinkIndex readout_up(std::uint32_t readout) const {
        return LinkIndex(2 * readout);
    }
    [[nodiscard]] LinkIndex uplink_down(std::uint32_t i) const {
        return LinkIndex(2 * (config_.readouts + i));
    }
    [[nodiscard]] LinkIndex access_down(std::uint32_t builder) const {
        return LinkIndex(2 * (config_.readouts + config_.uplinks + builder));
    }
    /// Endpoint of `builder` on its connection to `readout`; that of the readout unit is its peer.
    [[nodiscard]] EndpointIndex endpoint(std::uint32_t builder, std::uint32_t readout) {
        return stack().endpoints().endpoint(network::NodeIndex(config_.readouts + builder),
                                            network::NodeIndex(readout), {});
    }

  private:
    Rack(const RackConfig& config, std::unique_ptr<PullSystem> system)
        : config_(config), system_(std::move(system)) {}

    [[nodiscard]] transport::TcpOverEthernet& stack() {
        return dynamic_cast<transport::TcpOverEthernet&>(system_->transport());
    }
    [[nodiscard]] const transport::TcpOverEthernet& stack() const {
        return dynamic_cast<const transport::TcpOverEthernet&>(system_->transport());
    }

    RackConfig config_;
    std::unique_ptr<PullSystem> system_;
};

}  // namespace daqloom::systems

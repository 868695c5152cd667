// Pull building on one rack, described in few numbers, for tests, benchmarks and fuzzing.
//
//   readout 0 ──┐                                     ┌── builder 0
//   readout 1 ──┤ core ══ uplink(s) ══ top of rack ───┤── builder 1
//   storage 0 ──┤                                     └──    …
//      …      ──┘
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ethernet/network.hpp"
#include "systems/recording/recorder.hpp"
#include "systems/requested/pull_system.hpp"
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

/// Pull building on a rack; `pull_of` derives the network and the hosts of the units.
struct RackConfig : PullSystemConfig {
    std::uint32_t readout_units = 1;
    std::uint32_t builder_units = 1;

    LinkConfig readout_link;
    LinkConfig uplink;
    std::uint32_t uplinks = 1;
    LinkConfig access_link;
    SwitchConfig core;
    SwitchConfig tor;
    TcpConfig tcp;
    ethernet::LossConfig access_loss;  ///< on the links to the builders; its `link` is ignored
};

/// The laboratory of the ATLAS study: 48 readout units, 32 builders, 800 Gb/s into the rack and 25
/// Gb/s to each builder; 5 MB at 12 kHz. Infinite buffers; 10 ms of virtual time, 4 of them
/// warm-up.
inline RackConfig atlas_lab() {
    RackConfig config;
    config.readout_units = 48;
    config.builder_units = 32;
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

/// Hosts are the readout units, the builder units, then the storage units; switch 0 is the core, 1
/// the top of rack.
inline ethernet::NetworkConfig network_of(const RackConfig& rack) {
    using network::End;
    using network::NodeIndex;
    using network::PortNumber;
    ethernet::NetworkConfig config;
    network::Graph& graph = config;
    const std::uint32_t first_storage = rack.readout_units + rack.builder_units;
    graph.hosts = first_storage + rack.storage.units;
    const std::uint32_t first_storage_port = rack.readout_units + rack.uplinks + 1;
    graph.switch_ports = {static_cast<PortNumber>(first_storage_port - 1 + rack.storage.units),
                          static_cast<PortNumber>(rack.uplinks + rack.builder_units)};
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
    for (std::uint32_t i = 0; i < rack.readout_units; ++i) {
        cable(end(i, 1), end(core, i + 1), rack.readout_link, fmt::format("source.{}", i), true);
    }
    for (std::uint32_t i = 0; i < rack.uplinks; ++i) {
        cable(end(core, rack.readout_units + i + 1), end(tor, i + 1), rack.uplink,
              fmt::format("uplink.{}", i), false);
    }
    for (std::uint32_t i = 0; i < rack.builder_units; ++i) {
        const LinkIndex down(2 * graph.cables.size());
        cable(end(tor, rack.uplinks + i + 1), end(rack.readout_units + i, 1), rack.access_link,
              fmt::format("access.{}", i), false);
        if (rack.access_loss.probability != 0 || rack.access_loss.period != 0) {
            config.losses.push_back({down, rack.access_loss.probability, rack.access_loss.period});
        }
    }
    for (std::uint32_t i = 0; i < rack.storage.units; ++i) {
        cable(end(first_storage + i, 1), end(core, first_storage_port + i), rack.readout_link,
              fmt::format("storage.{}", i), true);
    }
    std::vector<PortNumber> down;
    std::vector<PortNumber> up;
    for (std::uint32_t i = 0; i < rack.uplinks; ++i) {
        down.push_back(static_cast<PortNumber>(rack.readout_units + i + 1));
        up.push_back(static_cast<PortNumber>(i + 1));
    }
    graph.groups = {{NodeIndex(core), down}, {NodeIndex(tor), up}};
    for (std::uint32_t host = 0; host < graph.hosts; ++host) {
        graph.forwarding.push_back(static_cast<network::Route>(
            host < rack.readout_units ? host + 1
            : host < first_storage    ? graph.switch_ports[0] + 1U
                                      : first_storage_port + host - first_storage));
    }
    for (std::uint32_t host = 0; host < graph.hosts; ++host) {
        graph.forwarding.push_back(
            static_cast<network::Route>(host < rack.readout_units || host >= first_storage
                                            ? graph.switch_ports[1] + 1U
                                            : rack.uplinks + host - rack.readout_units + 1));
    }
    config.switches = {rack.core, rack.tor};
    config.seed = rack.seed;
    return config;
}

inline PullSystemConfig pull_of(const RackConfig& rack) {
    PullSystemConfig config = rack;
    config.network = network_of(rack);
    config.transport = rack.tcp;
    for (std::uint32_t i = 0; i < rack.readout_units + rack.builder_units; ++i) {
        (i < rack.readout_units ? config.readouts : config.builders).emplace_back(i);
    }
    for (std::uint32_t i = 0; i < rack.storage.units; ++i) {
        config.storages.emplace_back(rack.readout_units + rack.builder_units + i);
    }
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
    [[nodiscard]] auto check_conservation() const { return system_->check_conservation(); }
    [[nodiscard]] std::uint64_t fingerprint() const { return system_->fingerprint(); }
    void observe(ethernet::Observer* frames, transport::TimeoutObserver* timeouts,
                 EventObserver* events) {
        stack().observe(frames, timeouts);
        system_->observe(events);
    }

    [[nodiscard]] static LinkIndex readout_up(std::uint32_t i) { return LinkIndex(2 * i); }
    [[nodiscard]] LinkIndex uplink_down(std::uint32_t i) const {
        return LinkIndex(2 * (config_.readout_units + i));
    }
    [[nodiscard]] LinkIndex access_down(std::uint32_t builder) const {
        return LinkIndex(2 * (config_.readout_units + config_.uplinks + builder));
    }
    /// Endpoint of `builder` on its connection to `readout`; that of the readout unit is its peer.
    [[nodiscard]] EndpointIndex endpoint(std::uint32_t builder, std::uint32_t readout) {
        return stack().endpoints().endpoint(network::NodeIndex(config_.readout_units + builder),
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

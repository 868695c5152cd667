// For tests and fuzzing: any small system in which links and nodes fail, and the promises that a
// run of it must keep.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "base/byte_source_test.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/controlled_test.hpp"
#include "systems/daqpipe_system.hpp"
#include "systems/flow_system.hpp"
#include "systems/on_fabric_test.hpp"
#include "systems/pull_system.hpp"
#include "systems/shift_system.hpp"

namespace daqloom::systems {

inline constexpr Time kFailuresEnd = base::milliseconds(3);

/// What goes wrong in all runs together.
struct WentWrong {
    std::uint64_t cut = 0;
    std::uint64_t unreachable = 0;  ///< writes given up
    std::uint64_t lost = 0;         ///< units
    std::uint64_t built = 0;        ///< events
};

/// Links that break, come back, are slow or have bit errors, and tables that change.
template <class Config>
Config with_failing_links(Config config, base::ByteSource& from) {
    using Change = typename decltype(config.changes)::value_type;
    using Link = std::remove_cvref_t<decltype(Change{}.link)>;
    constexpr bool is_infiniband = std::is_same_v<Config, FabricConfig>;
    for (network::Cable& cable : config.cables) {
        cable.delay = base::nanoseconds(from.number(0, 5'000));
    }
    for (std::uint8_t left = from.byte() % 12; left > 0; --left) {
        Change change;
        change.at = base::nanoseconds(from.number(1, 60'000) * 40);
        const auto link = static_cast<std::uint32_t>(from.byte() % (2 * config.cables.size()));
        change.link = Link(link);
        change.what = static_cast<typename Change::What>(from.byte() % (is_infiniband ? 5 : 7));
        change.rate = base::gigabits_per_second(from.number(1, 100));
        change.bit_errors = from.one_of({0.0, 1e-7, 1e-5, 1e-3});
        if constexpr (is_infiniband) {
            change.link_retry = base::nanoseconds(from.number(0, 1'000));
        } else {
            const network::Cable& cable = config.cables[link / 2];
            const bool is_of_host = config.is_host((link % 2 == 0 ? cable.a : cable.b).node);
            change.drops = change.what == Change::What::down && !is_of_host && from.coin();
        }
        config.changes.push_back(change);
    }
    std::ranges::stable_sort(config.changes, {}, &Change::at);
    for (std::uint8_t left = from.byte() % 3; left > 0; --left) {
        network::Rerouting other{
            base::nanoseconds(from.number(1, 60'000) * 40), config.forwarding, {}};
        for (network::Route& route : other.forwarding) {
            if (from.byte() % 8 == 0) {
                route = from.one_of<network::Route>({0, 1});  // none, or to the first port
            }
        }
        config.reroutings.push_back(other);
    }
    std::ranges::stable_sort(config.reroutings, {}, &network::Rerouting::at);
    return config;
}

/// A tree of up to nine hosts; returns how many.
inline std::uint32_t set_any_network(SystemConfig& config, base::ByteSource& from) {
    const auto leaves = static_cast<std::uint32_t>(from.number(1, 3));
    const auto spines = static_cast<std::uint32_t>(from.number(1, 2));
    const auto down = static_cast<std::uint32_t>(from.number(leaves == 1 ? 2 : 1, 3));
    FabricConfig fabric =
        fat_tree(leaves, spines, down, base::gigabits_per_second(from.one_of({100, 25})));
    transport::RdmaConfig rdma;
    rdma.retry_timeout = base::microseconds(from.number(20, 300));
    config.transport = rdma;
    if (from.coin()) {
        config.network = with_failing_links(std::move(fabric), from);
        return leaves * down;
    }
    ethernet::NetworkConfig ethernet;
    static_cast<network::Graph&>(ethernet) = fabric;
    ethernet.switches.resize(leaves + spines);
    config.network = with_failing_links(std::move(ethernet), from);
    if (from.coin()) {
        transport::TcpConfig tcp;
        tcp.rto_min = base::microseconds(200);
        config.transport = tcp;
    }
    return leaves * down;
}

/// Nodes that stop, are slow, or whose units are killed.
template <class Config>
void set_failing_nodes(Config& config, std::uint32_t hosts, bool kills, base::ByteSource& from) {
    for (std::uint8_t left = from.byte() % 5; left > 0; --left) {
        NodeChange change;
        change.at = base::nanoseconds(from.number(1, 60'000) * 40);
        change.host = NodeIndex(from.byte() % hosts);
        change.what = from.one_of({NodeChange::What::stop, NodeChange::What::slow,
                                   kills ? NodeChange::What::kill : NodeChange::What::stop});
        if (change.what != NodeChange::What::slow) {
            change.until = change.at + base::microseconds(from.number(1, 2'000));
        }
        change.factor = static_cast<double>(from.number(1, 9));
        config.node_changes.push_back(change);
    }
}

template <class Config>
void set_any_run(Config& config, base::ByteSource& from) {
    if (!std::holds_alternative<transport::RdmaConfig>(config.transport) || from.coin()) {
        return;
    }
    control(config, std::get<transport::RdmaConfig>(config.transport).retry_timeout);
    config.run->restart = from.coin();
    config.run->moves_apart = from.coin();
    config.launch = base::microseconds(from.number(0, 300));
    config.keeps_lost_slots = from.coin();
}

/// Runs in pieces. Returns the first promise that is broken, or nothing.
template <class System, class Config>
std::string broken_promise_of(const Config& config, WentWrong& sum) {
    auto made = System::make(config);
    if (!made) {
        return made.error().message;
    }
    System& system = **made;
    for (int piece = 1; piece <= 3; ++piece) {
        system.run(config.duration * piece / 3);
        if (const auto conserved = system.check_conservation(); !conserved) {
            return conserved.error().message;
        }
    }
    const RunReport report = system.run_report();
    if (report.network.ethernet) {
        sum.cut += report.network.ethernet->cut;
    }
    if (report.network.infiniband) {
        for (const PortReport& port : report.network.infiniband->ports) {
            sum.cut += port.cut;
        }
    }
    sum.unreachable += report.network.rdma ? report.network.rdma->writes_failed : 0;
    if constexpr (requires { system.run_control(); }) {
        if (system.run_control() != nullptr) {
            const RunDriver::Accounts all = system.run_control()->accounts();
            sum.lost += all.units_lost;
            sum.built += static_cast<std::uint64_t>(all.built);
        }
    }
    return "";
}

/// A run of any protocol over any network takes milliseconds.
inline std::string broken_promise_of_failures(std::span<const std::uint8_t> bytes, WentWrong& sum) {
    base::ByteSource from(bytes);
    const auto set = [&](auto& config) {
        config.duration = kFailuresEnd;
        config.seed = from.byte();
        config.message_cost = base::nanoseconds(from.number(0, 500));
        config.local_rate = base::gigabits_per_second(from.one_of({0, 100}));
        return set_any_network(config, from);
    };
    switch (from.byte() % 4) {
        case 0: {
            ShiftSystemConfig config;
            const std::uint32_t hosts = set(config);
            set_any_run(config, from);
            for (std::uint32_t host = 0; host < hosts; ++host) {
                // Some are dummies, or where units regroup, spares.
                const bool has_units = host < 2 || from.byte() % 4 > 0;
                config.slots.push_back(has_units ? NodeIndex(host) : NodeIndex::none());
                config.spare_slots.push_back(has_units || !config.run ? NodeIndex::none()
                                                                      : NodeIndex(host));
                if (has_units) {
                    config.mfp_bytes.push_back(from.number(1, 30'000));
                }
            }
            config.barrier = static_cast<protocol::ShiftBarrier>(from.byte() % 4);
            if (from.coin()) {
                config.pace = protocol::Pace::builder;
            }
            set_failing_nodes(config, config.run ? hosts : 2, config.run.has_value(), from);
            return broken_promise_of<ShiftSystem>(config, sum);
        }
        case 1: {
            DaqpipeSystemConfig config;
            const std::uint32_t hosts = set(config);
            set_any_run(config, from);
            for (std::uint32_t host = 0; host < hosts; ++host) {
                config.readouts.emplace_back(host);
                config.fragment_bytes.push_back(from.number(1, 30'000));
                if (host < 2 || from.coin()) {
                    config.builders.emplace_back(host);
                }
            }
            config.is_push = from.coin();
            config.credits = static_cast<std::uint32_t>(from.number(1, 3));
            config.parallel_sends = static_cast<std::uint32_t>(from.number(1, 3));
            config.slot = base::microseconds(from.coin() ? from.number(5, 20) : 0);
            set_failing_nodes(config, hosts, config.run.has_value(), from);
            return broken_promise_of<DaqpipeSystem>(config, sum);
        }
        case 2: {
            PullSystemConfig config;
            const std::uint32_t hosts = set(config);
            for (std::uint32_t host = 0; host < hosts; ++host) {
                (host % 2 == 0 ? config.readouts : config.builders).push_back(NodeIndex(host));
            }
            config.arrivals.rate_hz = static_cast<double>(from.number(1'000, 60'000));
            config.event_size.mean = from.number(1, 60'000);
            set_failing_nodes(config, hosts, false, from);
            return broken_promise_of<PullSystem>(config, sum);
        }
        default: {
            FlowSystemConfig config;
            const std::uint32_t hosts = set(config);
            Flow flow;
            flow.name = "all";
            for (std::uint32_t host = 0; host < hosts; ++host) {
                config.flow_hosts.emplace_back(host);
                flow.sources.push_back(host);
            }
            flow.bytes = from.number(1, 60'000);
            flow.outstanding = static_cast<std::uint32_t>(from.number(1, 4));
            config.flows = {flow};
            set_failing_nodes(config, hosts, false, from);
            return broken_promise_of<FlowSystem>(config, sum);
        }
    }
}

}  // namespace daqloom::systems

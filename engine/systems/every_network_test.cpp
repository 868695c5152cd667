// Each protocol over each network: all MEPs, events and messages that can be built or sent are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

#include "base/expected_test.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/flow_system.hpp"
#include "systems/outcome_test.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/run/run_control_test.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {
namespace {

using base::Time;

/// Hosts of a tree of three leaves, with four hosts each, and two spines.
constexpr std::uint32_t kHosts = 12;
constexpr base::Bytes kTreeFragment = 20'000;

struct NamedNetwork {
    const char* name;
    void (*set)(SystemConfig& config);
};
void PrintTo(const NamedNetwork& network, std::ostream* out) { *out << network.name; }

ethernet::NetworkConfig ethernet_tree() {
    ethernet::NetworkConfig config;
    static_cast<network::Graph&>(config) = fat_tree(3, 2, 4, base::gigabits_per_second(100));
    config.switches.resize(5);
    return config;
}

transport::RdmaConfig retrying() {
    transport::RdmaConfig config;
    config.retry_timeout = base::microseconds(200);
    return config;
}

transport::TcpConfig quick_tcp() {
    transport::TcpConfig config;
    config.rto_min = base::milliseconds(1);
    return config;
}

template <class Network, class Transport>
void use(SystemConfig& config, const Network& network, const Transport& transport) {
    config.network = network;
    config.transport = transport;
}

/// Queues so short that bursts lose frames.
ethernet::NetworkConfig lossy_tree(std::uint32_t packets) {
    ethernet::NetworkConfig config = ethernet_tree();
    for (ethernet::SwitchConfig& each : config.switches) {
        each.model = ethernet::BufferModel::drop_tail;
        each.queue_packets = packets;
    }
    return config;
}

/// Gives data and control messages separate classes in hosts and switches. One link changes its
/// rate and one is held for a while.
void set_classes(SystemConfig& config) {
    using What = ethernet::LinkChange::What;
    ethernet::NetworkConfig tree = ethernet_tree();
    tree.host_schedule.scheduling = ethernet::Scheduling::strict;
    for (ethernet::SwitchConfig& each : tree.switches) {
        each.schedule = {ethernet::Scheduling::weighted, {1, 0, 0, 3}};
    }
    tree.service_classes = {ethernet::TrafficClass(0), ethernet::TrafficClass(3)};
    config.control_service_level = 1;
    tree.changes = {
        {.at = base::microseconds(20),
         .link = ethernet::LinkIndex(8),
         .what = What::rate,
         .rate = base::gigabits_per_second(10)},
        {.at = base::microseconds(30), .link = ethernet::LinkIndex(0), .what = What::hold},
        {.at = base::microseconds(200), .link = ethernet::LinkIndex(0), .what = What::resume},
    };
    config.network = tree;
}

/// A tree in which host 0 is cut off for a while, and a leaf from a spine, which then drops frames.
ethernet::NetworkConfig failing_tree() {
    using What = ethernet::LinkChange::What;
    ethernet::NetworkConfig tree = ethernet_tree();
    for (network::Cable& cable : tree.cables) {
        cable.delay = base::microseconds(10);  // so that packets are on the wires
    }
    for (const std::uint32_t link : {0U, 1U, 8U, 9U}) {
        tree.changes.push_back(
            {.at = base::microseconds(70), .link = ethernet::LinkIndex(link), .drops = link >= 8});
        tree.changes.push_back(
            {.at = base::microseconds(300), .link = ethernet::LinkIndex(link), .what = What::up});
    }
    return tree;
}

/// A failing fabric, whose links are dark before they are down.
infiniband::FabricConfig failing_fabric() {
    using What = infiniband::LinkChange::What;
    infiniband::FabricConfig fabric = fat_tree(3, 2, 4, base::gigabits_per_second(100));
    for (network::Cable& cable : fabric.cables) {
        cable.delay = base::microseconds(10);
    }
    const auto change = [&](Time at, What what) {
        for (const std::uint32_t link : {0U, 1U, 8U, 9U}) {
            infiniband::LinkChange one;
            one.at = at;
            one.link = link;
            one.what = what;
            fabric.changes.push_back(one);
        }
    };
    change(base::microseconds(70), What::dark);
    change(base::microseconds(100), What::down);
    change(base::microseconds(300), What::up);
    return fabric;
}

/// Breaks the cable from leaf 0 to spine 0, number 4, for good; spine 1 reaches all hosts.
template <class Config>
Config rerouted(Config config) {
    std::erase_if(config.changes, [](const auto& change) {
        return change.link != std::remove_cvref_t<decltype(change.link)>(8) &&
               change.link != std::remove_cvref_t<decltype(change.link)>(9);
    });
    std::erase_if(config.changes, [](const auto& change) {
        return change.what == std::remove_cvref_t<decltype(change)>::What::up;
    });
    network::Rerouting other{base::microseconds(250), config.forwarding, {}};
    for (std::uint32_t leaf = 0; leaf < 3; ++leaf) {
        for (std::uint32_t host = 0; host < kHosts; ++host) {
            if (host / 4 != leaf) {
                other.forwarding[leaf * kHosts + host] = 6;
            }
        }
    }
    config.reroutings = {other};
    return config;
}

const NamedNetwork kNetworks[] = {
    {"TcpOverEthernet",
     [](SystemConfig& config) { use(config, ethernet_tree(), transport::TcpConfig{}); }},
    {"TcpOverEthernetWithDrops",
     [](SystemConfig& config) { use(config, lossy_tree(12), quick_tcp()); }},
    {"RdmaOverEthernet",
     [](SystemConfig& config) { use(config, ethernet_tree(), transport::RdmaConfig{}); }},
    {"RdmaOverEthernetWithDrops",
     [](SystemConfig& config) { use(config, lossy_tree(12), retrying()); }},
    {"TcpOverEthernetWithClasses",
     [](SystemConfig& config) {
         set_classes(config);
         config.transport = transport::TcpConfig{};
     }},
    {"RdmaOverEthernetWithClasses",
     [](SystemConfig& config) {
         set_classes(config);
         config.transport = transport::RdmaConfig{};
     }},
    {"RdmaOverInfiniband",
     [](SystemConfig& config) {
         use(config, fat_tree(3, 2, 4, base::gigabits_per_second(100)), transport::RdmaConfig{});
     }},
};

/// Adds thirty messages from each host to one of the others.
void add_flows(SystemConfig& config) {
    Flow flow;
    flow.name = "all";
    for (std::uint32_t host = 0; host < kHosts; ++host) {
        config.flow_hosts.emplace_back(host);
        flow.sources.push_back(host);
    }
    flow.bytes = kTreeFragment;
    flow.messages = 30;
    flow.outstanding = 4;
    config.flows = {flow};
}

/// Whether there are flows beside event building.
enum class Flows : std::uint8_t { none, beside };

/// Plays a system that can build `events` events of `event` bytes, with flows or without.
template <class System, class Config>
Outcome play(Config config, Flows flows, std::uint64_t events, base::Bytes event) {
    config.duration = base::milliseconds(100);
    if (flows == Flows::beside) {
        add_flows(config);
    }
    const auto system = base::value_of(System::make(config));
    Outcome outcome;
    run(*system, config.duration, 10, outcome);
    count(*system, outcome);
    const EventCounts built = built_by(*system);
    outcome.done = built.events;
    outcome.to_do = events;
    outcome.bytes = built.bytes - static_cast<base::Bytes>(events) * event;
    for (const FlowCount& flow : system->flows().counted()) {
        outcome.done += flow.messages;
        outcome.to_do += 30 * kHosts;
        outcome.bytes += flow.bytes - 30 * kHosts * kTreeFragment;
    }
    return outcome;
}

/// Pull building with eight readout units and four builder units.
PullSystemConfig pull_on(const NamedNetwork& network) {
    PullSystemConfig config;
    network.set(config);
    for (std::uint32_t host = 0; host < kHosts; ++host) {
        (host % 3 == 2 ? config.builders : config.readouts).push_back(NodeIndex(host));
    }
    config.event_size.mean = 8 * kTreeFragment;
    return config;
}

ShiftSystemConfig shift_on(const NamedNetwork& network) {
    ShiftSystemConfig config;
    network.set(config);
    config.slots = infiniband::node_indices({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    config.mfp_bytes.assign(kHosts, kTreeFragment);
    config.barrier = protocol::ShiftBarrier::tournament;
    return config;
}

DaqpipeSystemConfig daqpipe_on(const NamedNetwork& network) {
    DaqpipeSystemConfig config;
    network.set(config);
    config.readouts = config.builders = shift_on(network).slots;
    config.fragment_bytes.assign(kHosts, kTreeFragment);
    return config;
}

/// Plays pull building of forty events.
Outcome pull(const NamedNetwork& network, Flows flows) {
    PullSystemConfig config = pull_on(network);
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    for (int event = 0; event < 40; ++event) {
        config.arrivals.trace_times.push_back(base::microseconds(10 * event));
    }
    return play<PullSystem>(config, flows, 40, 8 * kTreeFragment);
}

/// Plays linear shifting. Streams have room for two rounds and MFPs are never acknowledged, so that
/// every builder unit builds a MEP of each round.
Outcome shift(const NamedNetwork& network, Flows flows,
              protocol::Pace pace = protocol::Pace::schedule) {
    ShiftSystemConfig config = shift_on(network);
    config.pace = pace;
    if (pace == protocol::Pace::builder) {  // only units of the same leaf wait for each other
        config.barrier_groups = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
    }
    config.source_acknowledge.mean = base::seconds(10);
    return play<ShiftSystem>(config, flows, 2 * kHosts, kHosts * kTreeFragment);
}

/// Plays DAQPIPE. Events are never consumed: every builder unit builds as many as it has credits.
Outcome daqpipe(const NamedNetwork& network, bool is_push, Flows flows) {
    DaqpipeSystemConfig config = daqpipe_on(network);
    config.is_push = is_push;
    config.credits = 2;
    config.processing = {{.mean = base::seconds(10)}};
    return play<DaqpipeSystem>(config, flows, 2 * kHosts, kHosts * kTreeFragment);
}

struct Building {
    const char* name;
    Outcome (*run)(const NamedNetwork& network);
};
void PrintTo(const Building& building, std::ostream* out) { *out << building.name; }

const Building kBuildings[] = {
    {"Pull", [](const NamedNetwork& network) { return pull(network, Flows::none); }},
    {"Shift", [](const NamedNetwork& network) { return shift(network, Flows::none); }},
    {"ShiftAtTheBuildersPace",
     [](const NamedNetwork& network) {
         return shift(network, Flows::none, protocol::Pace::builder);
     }},
    {"DaqpipePush",
     [](const NamedNetwork& network) { return daqpipe(network, true, Flows::none); }},
    {"DaqpipePull",
     [](const NamedNetwork& network) { return daqpipe(network, false, Flows::none); }},
    {"Flows",
     [](const NamedNetwork& network) {
         FlowSystemConfig config;
         network.set(config);
         return play<FlowSystem>(config, Flows::beside, 0, 0);
     }},
    {"PullBesideFlows", [](const NamedNetwork& network) { return pull(network, Flows::beside); }},
    {"ShiftBesideFlows", [](const NamedNetwork& network) { return shift(network, Flows::beside); }},
    {"DaqpipeBesideFlows",
     [](const NamedNetwork& network) { return daqpipe(network, true, Flows::beside); }},
};

std::string name_of_cell(
    const ::testing::TestParamInfo<std::tuple<Building, NamedNetwork>>& given) {
    const auto& [building, network] = given.param;
    return fmt::format("{}{}", building.name, network.name);
}

/// Expects that all data arrive and no write is given up.
void expect_done(const Outcome& outcome) {
    EXPECT_EQ(outcome.broken, "");
    EXPECT_EQ(outcome.done, outcome.to_do);
    EXPECT_EQ(outcome.bytes, 0);
    EXPECT_EQ(outcome.failed, 0U);
}

class EveryNetwork : public ::testing::TestWithParam<std::tuple<Building, NamedNetwork>> {};

TEST_P(EveryNetwork, CarriesAllThatIsToBeDone) {
    const auto& [building, network] = GetParam();
    const Outcome once = building.run(network);
    expect_done(once);
    const bool is_lossy = std::string(network.name).ends_with("WithDrops");
    EXPECT_EQ(once.resent > 0, once.drops > 0);
    EXPECT_TRUE(is_lossy || once.drops == 0);
    EXPECT_EQ(building.run(network).fingerprint, once.fingerprint);
}

INSTANTIATE_TEST_SUITE_P(, EveryNetwork,
                         ::testing::Combine(::testing::ValuesIn(kBuildings),
                                            ::testing::ValuesIn(kNetworks)),
                         &name_of_cell);

const NamedNetwork kFailing[] = {
    {"TcpOverEthernet", [](SystemConfig& config) { use(config, failing_tree(), quick_tcp()); }},
    {"RdmaOverEthernet", [](SystemConfig& config) { use(config, failing_tree(), retrying()); }},
    {"RdmaOverInfiniband", [](SystemConfig& config) { use(config, failing_fabric(), retrying()); }},
    {"TcpOverReroutedEthernet",
     [](SystemConfig& config) { use(config, rerouted(failing_tree()), quick_tcp()); }},
    {"RdmaOverReroutedEthernet",
     [](SystemConfig& config) { use(config, rerouted(failing_tree()), retrying()); }},
    {"RdmaOverReroutedInfiniband",
     [](SystemConfig& config) { use(config, rerouted(failing_fabric()), retrying()); }},
    {"RdmaOverInfinibandFromStoppedNodes",
     [](SystemConfig& config) {
         use(config, failing_fabric(), retrying());
         for (const std::uint32_t host : {1U, 6U}) {
             config.node_changes.push_back({.at = base::microseconds(60),
                                            .host = NodeIndex(host),
                                            .what = NodeChange::What::stop,
                                            .until = base::microseconds(500)});
         }
     }},
};

class LinksThatFail : public ::testing::TestWithParam<std::tuple<Building, NamedNetwork>> {};

TEST_P(LinksThatFail, DelayTheWork) {
    const auto& [building, network] = GetParam();
    const Outcome once = building.run(network);
    expect_done(once);
    EXPECT_GT(once.cut, 0U);
    EXPECT_GT(once.resent, 0U);
}

INSTANTIATE_TEST_SUITE_P(, LinksThatFail,
                         ::testing::Combine(::testing::ValuesIn(kBuildings),
                                            ::testing::ValuesIn(kFailing)),
                         &name_of_cell);

/// Kills one of the nodes and expects that the others build on. Each event of the run has one fate.
template <class System, class Config>
void expect_to_build_without_one(Config config, std::int64_t RunDriver::Accounts::*fate) {
    control(config, base::microseconds(200));
    config.run->heartbeat = base::milliseconds(1);
    config.run->fault_timeout = base::milliseconds(20);
    config.node_changes = {kill(5, base::milliseconds(2))};
    config.duration = base::milliseconds(30);
    const auto system = base::value_of(System::make(config));
    Outcome outcome;
    run(*system, base::milliseconds(20), 5, outcome);
    const auto before = system->run_control()->accounts();
    run(*system, base::milliseconds(30), 5, outcome);
    const auto after = system->run_control()->accounts();
    EXPECT_EQ(outcome.broken, "");
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{kHosts, 0, kHosts - 1}));
    EXPECT_GT(after.*fate, before.*fate + 2 * std::int64_t{kHosts});
    EXPECT_EQ(after.built + after.incomplete - after.*fate,
              before.built + before.incomplete - before.*fate);
}

class UnitsThatAreKilled : public ::testing::TestWithParam<NamedNetwork> {};

TEST_P(UnitsThatAreKilled, AreLeftOutByPullBuilding) {
    PullSystemConfig config = pull_on(GetParam());
    config.arrivals.rate_hz = 20'000;
    expect_to_build_without_one<PullSystem>(config, &RunDriver::Accounts::built);
}
TEST_P(UnitsThatAreKilled, AreLeftOutByLinearShifting) {
    expect_to_build_without_one<ShiftSystem>(shift_on(GetParam()),
                                             &RunDriver::Accounts::incomplete);
}
TEST_P(UnitsThatAreKilled, AreLeftOutByDaqpipe) {
    DaqpipeSystemConfig config = daqpipe_on(GetParam());
    config.event_interval = base::microseconds(50);
    expect_to_build_without_one<DaqpipeSystem>(config, &RunDriver::Accounts::incomplete);
}

INSTANTIATE_TEST_SUITE_P(, UnitsThatAreKilled, ::testing::ValuesIn(kNetworks),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(EveryNetworkWithDrops, LosesPacketsOfManySendersToOne) {
    EXPECT_GT(pull(kNetworks[1], Flows::none).drops, 0U);
    EXPECT_GT(pull(kNetworks[3], Flows::none).drops, 0U);
    EXPECT_GT(daqpipe(kNetworks[3], true, Flows::none).drops, 0U);
}

TEST(TcpOverInfiniband, IsRefused) {
    FlowSystemConfig config;
    config.network = fat_tree(3, 2, 4);
    config.transport = transport::TcpConfig{};
    config.flow_hosts = {NodeIndex(0), NodeIndex(1)};
    EXPECT_EQ(base::message_of(FlowSystem::make(config)),
              "TCP over InfiniBand is not simulated; expected RDMA");
}

}  // namespace
}  // namespace daqloom::systems

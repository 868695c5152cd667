// Flows during event building: the two share links and processors, and nothing else.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/failure_test.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {
namespace {

using base::Time;

constexpr base::Bytes kFragmentBeside = 1'000'000;

enum class Technology : std::uint8_t { ethernet, infiniband };

/// Five hosts on a switch.
template <class Config>
Config on(Technology technology) {
    Config config;
    if (technology == Technology::ethernet) {
        ethernet::NetworkConfig network;
        static_cast<network::Graph&>(network) = star(5);
        network.switches.resize(1);
        config.network = network;
        config.transport = transport::RdmaConfig{};
    } else {
        fabric_of(config) = star(5);
    }
    config.duration = base::milliseconds(8);
    return config;
}

/// Pull building on hosts 0 to 2, host 2 builds. An event comes every 0.4 ms and takes 0.1 ms.
PullSystemConfig pull(Technology technology) {
    auto config = on<PullSystemConfig>(technology);
    config.readouts = {NodeIndex(0)};
    config.builders = {NodeIndex(2)};
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    for (int event = 0; event < 19; ++event) {
        config.arrivals.trace_times.push_back(base::microseconds(400 * event));
    }
    config.event_size.mean = kFragmentBeside;
    return config;
}

ShiftSystemConfig shift(Technology technology) {
    auto config = on<ShiftSystemConfig>(technology);
    config.slots = {NodeIndex(0), NodeIndex(1), NodeIndex(2)};
    config.mfp_bytes.assign(3, 100'000);
    config.barrier = protocol::ShiftBarrier::tournament;
    return config;
}

DaqpipeSystemConfig daqpipe(Technology technology) {
    auto config = on<DaqpipeSystemConfig>(technology);
    config.readouts = config.builders = {NodeIndex(0), NodeIndex(1), NodeIndex(2)};
    config.fragment_bytes.assign(3, 100'000);
    return config;
}

/// Adds a flow from one host to another that takes half of the time of its link.
template <class Config>
Config with_flow(Config config, std::uint32_t from, std::uint32_t to) {
    Flow flow;
    flow.name = "beside";
    flow.sources = {0};
    flow.destination = 1;
    flow.bytes = 4096;
    flow.load = 0.5;
    config.flow_hosts = {NodeIndex(from), NodeIndex(to)};
    config.flows = {flow};
    return config;
}

/// Expects half a link's bytes of the flow, less its headers and the messages in flight.
void expect_half_a_link(const FlowTraffic& flows, Time duration) {
    const auto link = static_cast<double>(duration.ps) / static_cast<double>(kByteAt100Gbps.ps);
    EXPECT_NEAR(static_cast<double>(flows.counted()[0].bytes), 0.5 * link, 0.02 * link);
    EXPECT_GT(flows.latency(0).count(), 0U);
}

/// Expects that a flow makes events longer, by `share` of the time of a fragment on the link.
void expect_longer(const PullSystemConfig& config, double share, bool is_datagram = false) {
    const auto alone = play<PullSystem>(config);
    PullSystemConfig both = with_flow(config, 1, 2);
    both.flows[0].is_datagram = is_datagram;
    const auto beside = play<PullSystem>(both);
    EXPECT_EQ(alone->report().events_built, 19U);
    EXPECT_EQ(beside->report().events_built, 19U);
    expect_half_a_link(beside->flows(), config.duration);
    const Time fragment = kByteAt100Gbps * alone->transport().bytes_on_wire(kFragmentBeside);
    const double longer_ps = beside->latency().mean_ps() - alone->latency().mean_ps();
    const auto fragment_ps = static_cast<double>(fragment.ps);
    EXPECT_NEAR(longer_ps, share * fragment_ps, 0.03 * fragment_ps);
}

TEST(FlowsBeside, OnTheLinkOfABuilderUnitTakeItsHalf) {
    // The switch receives a fragment at full rate. Meanwhile half as many bytes of the flow arrive
    // and leave before the fragment's end.
    expect_longer(pull(Technology::ethernet), 0.5);
    expect_longer(pull(Technology::ethernet), 0.5, true);
    // Credits admit a fragment at the rate at which it leaves: the half rate that the flow leaves.
    expect_longer(pull(Technology::infiniband), 1);
}

/// All counts of a report.
template <class System>
std::vector<double> numbers(const System& system) {
    const auto report = system.report();
    std::vector<double> all;
    std::decay_t<decltype(report)>::each([&](const char*, auto member, const char*) {
        if constexpr (requires { (report.*member).ps; }) {
            all.push_back((report.*member).seconds());
        } else if constexpr (requires { (report.*member).mean_ps(); }) {
            all.push_back(static_cast<double>((report.*member).count()));
        } else {
            all.push_back(static_cast<double>(report.*member));
        }
    });
    const sim::Histogram& latency = system.write_latency();
    all.push_back(static_cast<double>(latency.count()));
    if (latency.count() > 0) {
        all.push_back(latency.mean_ps());
    }
    return all;
}

/// On InfiniBand, simultaneous packets in a switch may be served in another order, which changes
/// times by picoseconds.
template <class System, class Config>
void expect_untouched(const Config& config) {
    const auto alone = play<System>(config);
    const auto beside = play<System>(with_flow(config, 3, 4));
    expect_half_a_link(beside->flows(), config.duration);
    const double part = std::holds_alternative<ethernet::NetworkConfig>(config.network) ? 0 : 1e-5;
    const std::vector<double> had = numbers(*alone);
    const std::vector<double> has = numbers(*beside);
    ASSERT_EQ(has.size(), had.size());
    for (std::size_t i = 0; i < has.size(); ++i) {
        EXPECT_NEAR(has[i], had[i], part * had[i]) << "field " << i;
    }
    EXPECT_FALSE(beside->stalled());
    const auto again = play<System>(with_flow(config, 3, 4));
    EXPECT_EQ(again->fingerprint(), beside->fingerprint());
}

TEST(FlowsBeside, OnUnusedLinksChangeNothing) {
    for (const Technology technology : {Technology::ethernet, Technology::infiniband}) {
        expect_untouched<PullSystem>(pull(technology));
        expect_untouched<ShiftSystem>(shift(technology));
        expect_untouched<DaqpipeSystem>(daqpipe(technology));
    }
}

/// Messages of a flow cost the processor of the builder unit's host and delay its fragments.
TEST(FlowsBeside, TakeTheTimeOfTheSameProcessors) {
    PullSystemConfig config = pull(Technology::ethernet);
    config.builder_cost_per_message = base::microseconds(2);
    PullSystemConfig busy = with_flow(config, 1, 2);
    busy.flows[0].bytes = 64;
    busy.flows[0].load = 0;
    busy.flows[0].interval = base::microseconds(4);
    const auto alone = play<PullSystem>(config);
    const auto beside = play<PullSystem>(busy);
    EXPECT_GT(beside->latency().mean_ps(), alone->latency().mean_ps());
    EXPECT_GE(beside->flows().latency(0).min(), config.builder_cost_per_message);
}

/// At twice the rate of the link, half of the datagrams are dropped.
TEST(FlowsBeside, LoseDatagramsWithoutRoomOverUdp) {
    PullSystemConfig config = with_flow(pull(Technology::ethernet), 1, 3);
    config.flow_hosts = {NodeIndex(1), NodeIndex(3), NodeIndex(4)};
    config.flows[0].sources = {0, 1};
    config.flows[0].destination = 2;
    config.flows[0].load = 1;
    config.flows[0].is_datagram = true;
    auto& network = std::get<ethernet::NetworkConfig>(config.network);
    network.switches[0].model = ethernet::BufferModel::drop_tail;
    network.switches[0].queue_packets = 16;
    const auto played = play<PullSystem>(config);
    const FlowCount counted = played->flows().counted()[0];
    EXPECT_EQ(played->report().events_built, 19U);
    const auto sent = static_cast<double>(counted.messages + counted.lost);
    EXPECT_NEAR(static_cast<double>(counted.lost), 0.5 * sent, 0.01 * sent);
    EXPECT_EQ(counted.bytes, 4096 * static_cast<base::Bytes>(counted.messages));
}

TEST(FlowsBeside, GoOverUdpOnEthernetOnlyAndBetweenTwoHostsOfTheNetwork) {
    PullSystemConfig config = with_flow(pull(Technology::infiniband), 3, 4);
    config.flows[0].is_datagram = true;
    EXPECT_TRUE(base::fails_with("UDP over InfiniBand is not simulated", PullSystem::make(config)));
    config = with_flow(pull(Technology::ethernet), 9, 2);
    EXPECT_FALSE(PullSystem::make(config));  // there is no host 9
    config.flow_hosts = {NodeIndex(3), NodeIndex(3)};
    EXPECT_FALSE(PullSystem::make(config));
}

}  // namespace
}  // namespace daqloom::systems

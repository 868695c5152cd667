// Known answers of DAQPIPE on a simulated fabric.
#include "systems/requested/daqpipe_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"

namespace daqloom::systems {
namespace {

using base::Bytes;
using base::Time;
using protocol::BuilderIndex;

constexpr Bytes kFragmentPackets = 16;
constexpr Bytes kFragmentBytes = kFragmentPackets * 4096;

/// DAQPIPE on a star with readout units on the first hosts and builder units on the others.
DaqpipeSystemConfig unfolded(std::uint32_t readouts, std::uint32_t builders) {
    DaqpipeSystemConfig config;
    fabric_of(config) = star(readouts + builders);
    for (const NodeIndex host : all_hosts(fabric_of(config))) {
        (host.value() < readouts ? config.readouts : config.builders).push_back(host);
    }
    config.fragment_bytes.assign(readouts, kFragmentBytes);
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    return config;
}

/// DAQPIPE with a readout unit and a builder unit on each host.
DaqpipeSystemConfig folded(const FabricConfig& fabric) {
    DaqpipeSystemConfig config;
    fabric_of(config) = fabric;
    config.readouts = config.builders = all_hosts(fabric);
    config.fragment_bytes.assign(fabric.hosts, kFragmentBytes);
    return config;
}

std::unique_ptr<DaqpipeSystem> play(const DaqpipeSystemConfig& config, Time until) {
    return systems::play<DaqpipeSystem>(config, until,
                                        [](auto& system) { system.record_events(); });
}

// ---- how long messages take, on paper -----------------------------------------------------------

/// Time of a message on an idle star: o to send, the whole message on the wire and its first block
/// a second time for the switch, p until it is noticed, o to receive.
Time message(const DaqpipeSystemConfig& config, Bytes wire) {
    return config.message_cost * 2 + kByteAt100Gbps * (wire + std::min<Bytes>(wire, 64)) +
           fabric_of(config).cables[0].delay * 2 + fabric_of(config).switch_latency +
           config.polling_delay;
}

/// Headers: 26 B a packet, 16 B for the address, 4 B of immediate data. A request names an offset.
Time control_message(const DaqpipeSystemConfig& config) {
    return message(config, 16 + 26 + 16 + 4);
}
Time request(const DaqpipeSystemConfig& config) { return message(config, 16 + 8 + 26 + 16 + 4); }
Time fragment(const DaqpipeSystemConfig& config) {
    return message(config, kFragmentBytes + kFragmentPackets * 26 + 16 + 4);
}

/// Time between the last two events of a builder unit.
Time period(const DaqpipeSystem& system, BuilderIndex builder) {
    std::vector<Time> built;
    for (const auto& each : system.events_built()) {
        if (each.builder == builder) {
            built.push_back(each.built);
        }
    }
    return built.at(built.size() - 1) - built.at(built.size() - 2);
}

TEST(DaqpipeSystem, OneCreditAndOneSendTakeAllMessagesOneAfterTheOther) {
    const std::int64_t sources = 3;
    const DaqpipeSystemConfig config = unfolded(sources, 1);
    const auto system = play(config, base::milliseconds(1));
    // With its event, the builder unit requests and gets one fragment after another, and reports.
    const Time paper = control_message(config) + (request(config) + fragment(config)) * sources +
                       control_message(config);
    EXPECT_EQ(period(*system, BuilderIndex()).ps, paper.ps);
    // Latency: from the assignment to the last fragment, without the report.
    EXPECT_EQ(system->latency().count(), system->report().events_built);
    EXPECT_EQ(system->latency().max().ps, (paper - control_message(config)).ps);
}

TEST(DaqpipeSystem, PushSavesTheRequestsWay) {
    // All requests leave o apart; the builder unit receives the last fragment after the others.
    const std::int64_t sources = 3;
    DaqpipeSystemConfig config = unfolded(sources, 1);
    config.is_push = true;
    const auto system = play(config, base::milliseconds(1));
    const Time wire = kByteAt100Gbps * sources * (kFragmentBytes + kFragmentPackets * 26 + 16 + 4);
    const Time ways =
        control_message(config) * 2 + request(config) + fragment(config) - wire / sources;
    EXPECT_GE(period(*system, BuilderIndex()).ps, (wire + ways).ps);
    // Requests, updates and acknowledges share the wires.
    EXPECT_LE(period(*system, BuilderIndex()).ps, (wire + ways + base::nanoseconds(200)).ps);
}

TEST(DaqpipeSystem, MessagesCostTheProcessorTheirTime) {
    const DaqpipeSystemConfig config = unfolded(3, 1);
    const auto system = play(config, base::milliseconds(1));
    const DaqpipeReport report = system->report();
    const auto events = static_cast<double>(report.events_built);
    ASSERT_GT(events, 40);
    // An assignment, three requests, a report; and three fragments: each is sent and taken in.
    EXPECT_NEAR(static_cast<double>(report.control_messages), 5 * events, 5);
    EXPECT_NEAR(static_cast<double>(report.processor.ps),
                2 * 8 * events * static_cast<double>(config.message_cost.ps),
                2 * 8 * static_cast<double>(config.message_cost.ps));
}

TEST(DaqpipeSystem, MoreInParallelApproachesTheLinksPayloadRate) {
    // Wire time of an event.
    const Time wire = kByteAt100Gbps * 4 * (kFragmentBytes + kFragmentPackets * 26 + 16 + 4);
    const double most = 4.0 * kFragmentBytes / static_cast<double>(wire.ps);
    double last = 0;
    for (const std::uint32_t credits : {1U, 2U, 4U, 16U}) {
        DaqpipeSystemConfig config = unfolded(4, 1);
        config.credits = credits;
        config.parallel_sends = 4;
        config.warmup = base::milliseconds(1);
        const DaqpipeReport report = play(config, base::milliseconds(20))->report();
        const double rate =
            static_cast<double>(report.bytes_written) / static_cast<double>(report.window.ps);
        EXPECT_GT(rate, last);
        EXPECT_LE(rate, most);
        // An assignment goes the way of readout unit 0's fragments and waits behind them: once in
        // as many events as there are credits, the builder runs dry until it has asked anew.
        const Time ways =
            control_message(config) * 2 + request(config) + fragment(config) - wire / 4;
        const double busy = static_cast<double>((wire * credits).ps);
        EXPECT_GE(rate, 0.999 * most * busy / (busy + static_cast<double>(ways.ps)));
        last = rate;
    }
}

TEST(DaqpipeSystem, FragmentsWithinANodeTakeNoMessages) {
    DaqpipeSystemConfig config = folded(star(1));
    config.message_cost = base::nanoseconds(100);
    config.local_rate = base::gigabits_per_second(100);
    const auto system = play(config, base::microseconds(100));
    EXPECT_EQ(period(*system, BuilderIndex()).ps, kFragmentBytes * kByteAt100Gbps.ps);
    EXPECT_EQ(system->report().control_messages, 0U);
    EXPECT_EQ(network_under(*system).injected(), 0U);
    EXPECT_EQ(system->report().processor, Time::zero());
}

TEST(DaqpipeSystem, EventsComeAtTheirRateWhereBuildersCan) {
    DaqpipeSystemConfig config = unfolded(3, 2);
    config.credits = 2;
    config.event_interval = base::microseconds(20);  // 3 × 5.3 µs for each builder
    config.warmup = base::microseconds(500);
    EXPECT_NEAR(static_cast<double>(play(config, base::milliseconds(5))->report().events_built),
                4500.0 / 20, 1);
    config.event_interval = base::microseconds(2);
    EXPECT_LT(play(config, base::milliseconds(5))->report().events_built, 2 * 4500U / 16);
}

TEST(DaqpipeSystem, ABuilderKeepsItsCredits) {
    DaqpipeSystemConfig config = folded(star(4));
    config.credits = 3;
    config.parallel_sends = 2;
    config.processing = {{.mean = base::microseconds(20)}, {.mean = base::microseconds(30)}};
    const auto system = play(config, base::milliseconds(2));
    ASSERT_GT(system->events_built().size(), 100U);
    for (const BuilderIndex builder : base::IndexRange<BuilderIndex>(4)) {
        std::vector<std::pair<Time, int>> changes;  // of the number of events under way
        for (const auto& each : system->events_built()) {
            if (each.builder == builder) {
                changes.emplace_back(each.assigned, 1);
                changes.emplace_back(each.built + base::microseconds(50), -1);
            }
        }
        std::ranges::sort(changes);
        int held = 0;
        int most = 0;
        for (const auto& change : changes) {
            held += change.second;
            most = std::max(most, held);
        }
        EXPECT_EQ(most, 3);
    }
}

/// In a time slot a builder gets one fragment of each of its events, and the report of an event and
/// the next one come within the slot, so that an event takes one slot fewer than there are sources.
TEST(DaqpipeSystem, TimedTakesASlotForEachSource) {
    for (const bool is_push : {false, true}) {
        SCOPED_TRACE(is_push);
        const std::int64_t nodes = 4;
        DaqpipeSystemConfig config = folded(star(nodes));
        config.is_push = is_push;
        config.slot = base::microseconds(30);
        const auto system = play(config, config.slot * 100);
        for (const BuilderIndex builder : base::IndexRange<BuilderIndex>(nodes)) {
            const double slots = static_cast<double>(period(*system, builder).ps) /
                                 static_cast<double>(config.slot.ps);
            EXPECT_NEAR(slots, nodes - 1, 0.3);
        }
        EXPECT_NEAR(static_cast<double>(system->events_built().size()), 4 * 100.0 / 3, 4);
    }
}

TEST(DaqpipeSystem, TimedFollowsTheNodesClocks) {
    DaqpipeSystemConfig config = folded(star(4));
    config.slot = base::microseconds(30);
    config.clock_offset = base::microseconds(300);  // ten slots
    config.clock_drift = 1e-3;
    EXPECT_GT(play(config, base::milliseconds(3))->report().events_built, 100U);
}

// ---- books, in all variants ---------------------------------------------------------------------

class Variants : public ::testing::TestWithParam<std::tuple<bool, bool, bool>> {
  protected:
    static DaqpipeSystemConfig config(std::uint64_t seed) {
        const auto [is_push, is_timed, is_folded] = GetParam();
        DaqpipeSystemConfig config =
            is_folded ? folded(fat_tree(3, 3, 3, base::gigabits_per_second(100))) : unfolded(5, 4);
        config.is_push = is_push;
        config.slot = is_timed ? base::microseconds(7) : Time::zero();
        config.credits = 3;
        config.parallel_sends = 2;
        config.fragment_sizes = protocol::FragmentSizes::poisson;
        config.message_cost = base::nanoseconds(200);
        const auto exponential = base::DelayDistribution::Kind::exponential;
        config.latency = {exponential, base::nanoseconds(500), {}};
        config.processing = {{exponential, base::microseconds(5), {}}};
        config.clock_offset = base::nanoseconds(300);
        config.seed = seed;
        return config;
    }
};

TEST_P(Variants, BuildEachEventOnceAndLoseNothing) {
    const auto system = play(config(1), base::milliseconds(2));  // checks conservation too
    std::set<protocol::EventId> events;
    for (const auto& each : system->events_built()) {
        EXPECT_TRUE(events.insert(each.event).second);
        EXPECT_LT(each.assigned, each.built);
    }
    EXPECT_GT(events.size(), 50U);
    EXPECT_EQ(system->report().events_built, events.size());
    EXPECT_FALSE(system->stalled());
}

TEST_P(Variants, TheSameSeedGivesTheSameRun) {
    const auto fates = [](std::uint64_t seed) {
        const auto system = play(config(seed), base::milliseconds(1));
        std::vector<std::int64_t> all;
        for (const auto& each : system->events_built()) {
            all.push_back(each.built.ps);
        }
        all.push_back(system->report().bytes_written);
        all.push_back(static_cast<std::int64_t>(system->sim_events()));
        return all;
    };
    EXPECT_EQ(fates(1), fates(1));
    EXPECT_NE(fates(1), fates(2));
}

INSTANTIATE_TEST_SUITE_P(All, Variants,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(),
                                            ::testing::Bool()));

// ---- what cannot be -----------------------------------------------------------------------------

/// Three switches in a circle with a host each, all messages in the same direction, buffers of one
/// packet: a deadlock, although clock events go on.
TEST(DaqpipeSystem, StallsInADeadlockWhetherTimedOrNot) {
    FabricConfig ring;
    ring.hosts = 3;
    ring.switch_ports = {3, 3, 3};
    const auto rate = base::gigabits_per_second(100);
    for (std::uint32_t i = 0; i < 3; ++i) {
        ring.cables.push_back({end_at(i, 1), end_at(3 + i, 1), rate, base::nanoseconds(170)});
        ring.cables.push_back(
            {end_at(3 + i, 2), end_at(3 + (i + 1) % 3, 3), rate, base::nanoseconds(170)});
        for (std::uint32_t to = 0; to < 3; ++to) {
            ring.forwarding.push_back(to == i ? 1 : 2);
        }
    }
    ring.buffer_blocks = 65;
    for (const Time slot : {Time::zero(), base::microseconds(5)}) {
        DaqpipeSystemConfig config = folded(ring);
        config.credits = 8;
        config.parallel_sends = 8;
        config.slot = slot;
        auto system = *DaqpipeSystem::make(config);
        system->run(base::milliseconds(20));
        EXPECT_TRUE(system->stalled());
        EXPECT_FALSE(network_under(*system).deadlock().empty());
        EXPECT_TRUE(system->check_conservation());
    }
}

std::string refusal(const DaqpipeSystemConfig& config) {
    const auto made = DaqpipeSystem::make(config);
    return made ? "none" : made.error().message;
}

TEST(DaqpipeSystem, RefusesInvalidSystemsInASentence) {
    EXPECT_EQ(refusal(unfolded(3, 0)),
              "3 readout units, 0 builder units and 3 sizes of fragments; expected one of each at "
              "least, and a size for each readout unit");
    DaqpipeSystemConfig config = unfolded(2, 2);
    config.builders[1] = NodeIndex(4);
    EXPECT_EQ(refusal(config), "node 3 is host 4, which is not there or another node's");
    config.builders[1] = NodeIndex(2);
    EXPECT_EQ(refusal(config),
              "host 2 has two readout or two builder units; expected one of each at most");
    config = unfolded(2, 2);
    config.parallel_sends = 0;
    EXPECT_EQ(refusal(config), "DAQPIPE: 0 parallel sends; give 1 to 65536");
    config = unfolded(2, 2);
    config.credits = 0;
    EXPECT_NE(refusal(config).find("0 concurrent events"), std::string::npos);
    config = folded(star(200));
    config.credits = 100'000;
    EXPECT_EQ(
        refusal(config),
        "DAQPIPE: 100000 credits for each of 200 builder units with 200 readout units; give fewer, "
        "268435456 fragments under way at most");
}

}  // namespace
}  // namespace daqloom::systems

// Recorded fingerprints of small systems, each with another feature: a seed fixes a run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <variant>

#include "base/expected_test.hpp"
#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/flow_system.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {
namespace {

using base::DelayDistribution;
using base::Time;
using protocol::PhaseChange;
using protocol::ShiftBarrier;
using Kind = DelayDistribution::Kind;

constexpr base::Bytes kMfpOnRecord = 16 * 4096;

/// Gives nodes costs of messages, latencies of adapters and imperfect clocks.
template <class Config>
Config nodes_on(const FabricConfig& fabric) {
    Config config;
    fabric_of(config) = fabric;
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.latency = {Kind::exponential, base::nanoseconds(500), {}};
    config.clock_offset = base::nanoseconds(200);
    config.clock_drift = 1e-6;
    config.duration = base::microseconds(400);
    config.warmup = base::microseconds(50);
    return config;
}

// ---- linear shifting ----------------------------------------------------------------------------

/// A system and the recorded fingerprint of its run.
struct OnRecord {
    const char* name;
    const char* fingerprint;
    std::variant<ShiftSystemConfig, DaqpipeSystemConfig, FlowSystemConfig> config;

    friend std::ostream& operator<<(std::ostream& out, const OnRecord& record) {
        return out << record.name;
    }
};

/// A record of a configuration that differs by one feature.
template <class Config, class Change>
OnRecord changed(const char* name, const char* fingerprint, Config config, Change change) {
    change(config);
    return {name, fingerprint, config};
}

ShiftSystemConfig shift_on(const FabricConfig& fabric) {
    auto config = nodes_on<ShiftSystemConfig>(fabric);
    config.slots = all_hosts(fabric);
    config.mfp_bytes.assign(fabric.hosts, kMfpOnRecord);
    config.fragment_sizes = protocol::FragmentSizes::poisson;
    config.phase_jitter = {Kind::gaussian, base::nanoseconds(400), base::nanoseconds(100)};
    config.processing = {{Kind::uniform, base::microseconds(5), base::microseconds(2)}};
    return config;
}

template <class Change>
OnRecord shift(const char* name, const char* fingerprint, Change change) {
    return changed(name, fingerprint, shift_on(fat_tree(3, 3, 3)), change);
}

OnRecord barrier(const char* name, const char* fingerprint, ShiftBarrier barrier) {
    return shift(name, fingerprint, [=](ShiftSystemConfig& config) { config.barrier = barrier; });
}

/// An irregular fabric, as dumps describe them: a host without a unit, a cable of a lower rate,
/// cables and switches of different sizes, routes that follow no rule.
FabricConfig as_found() {
    FabricConfig fabric;
    fabric.hosts = 6;
    fabric.switch_ports = {6, 8, 4};
    const auto connect = [&](End a, End b, int gigabits, int delay_ns) {
        fabric.cables.push_back(
            {a, b, base::gigabits_per_second(gigabits), base::nanoseconds(delay_ns)});
    };
    connect(end_at(0, 1), end_at(6, 1), 200, 170);
    connect(end_at(1, 1), end_at(6, 2), 200, 180);
    connect(end_at(2, 1), end_at(6, 4), 100, 170);
    connect(end_at(3, 1), end_at(7, 1), 200, 210);
    connect(end_at(4, 1), end_at(7, 3), 200, 170);
    connect(end_at(5, 1), end_at(8, 1), 200, 170);
    connect(end_at(6, 5), end_at(7, 7), 200, 300);
    connect(end_at(6, 6), end_at(7, 8), 200, 310);
    connect(end_at(6, 3), end_at(8, 2), 200, 500);
    connect(end_at(7, 5), end_at(8, 4), 100, 520);
    fabric.forwarding = {1, 2, 4, 5, 6, 3,   //
                         7, 7, 8, 1, 3, 5,   //
                         2, 2, 2, 4, 4, 1};  //
    return fabric;
}

// ---- DAQPIPE ------------------------------------------------------------------------------------

DaqpipeSystemConfig daqpipe() {
    auto config = nodes_on<DaqpipeSystemConfig>(fat_tree(3, 3, 3));
    config.readouts = config.builders = all_hosts(fabric_of(config));
    config.fragment_bytes.assign(fabric_of(config).hosts, kMfpOnRecord);
    config.fragment_sizes = protocol::FragmentSizes::poisson;
    config.credits = 3;
    config.parallel_sends = 2;
    config.processing = {{Kind::exponential, base::microseconds(5), {}}};
    return config;
}

// ---- flows --------------------------------------------------------------------------------------

/// Random load from all to all on one lane, bursts from two nodes to a third on another.
FlowSystemConfig flows() {
    auto config = nodes_on<FlowSystemConfig>(fat_tree(3, 3, 3));
    config.flow_hosts = all_hosts(fabric_of(config));
    fabric_of(config).lanes = 2;
    fabric_of(config).service_lanes = virtual_lanes({0, 1});
    fabric_of(config).arbitration.low = lane_weights({{0, 64}, {1, 32}});
    Flow uniform;
    uniform.name = "uniform";
    uniform.sources = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    uniform.bytes = 5'000;
    uniform.load = 0.4;
    uniform.is_poissonian = true;
    Flow burst;
    burst.name = "burst";
    burst.sources = {1, 4};
    burst.destination = 8;
    burst.service_level = 1;
    burst.bytes = 100'000;
    burst.messages = 30;
    burst.start = base::microseconds(60);
    burst.outstanding = 4;
    config.flows = {uniform, burst};
    return config;
}

// ---- the record ---------------------------------------------------------------------------------

auto make(const ShiftSystemConfig& config) { return *ShiftSystem::make(config); }
auto make(const DaqpipeSystemConfig& config) { return *DaqpipeSystem::make(config); }
auto make(const FlowSystemConfig& config) { return *FlowSystem::make(config); }

template <class Config>
auto run_through(const Config& config) {
    auto system = make(config);
    system->run(config.duration);
    base::value_of(system->check_conservation());
    return system;
}

template <class System>
std::string print(const System& system) {
    return fmt::format("{:016x}", system.fingerprint());
}

class Fingerprint : public ::testing::TestWithParam<OnRecord> {};

/// Fingerprints hash every event of a run, in order. systems/rack/fingerprint_test.cpp states what
/// to do if one differs.
TEST_P(Fingerprint, IsTheOneOnRecordAndDiffersFromSeedToSeed) {
    std::visit(
        [](auto config) {
            EXPECT_EQ(print(*run_through(config)), GetParam().fingerprint);
            config.seed = 2;
            EXPECT_NE(print(*run_through(config)), GetParam().fingerprint);
        },
        GetParam().config);
}

TEST_P(Fingerprint, IsTheSameWhenARunPausesOnItsWay) {
    std::visit(
        [](const auto& config) {
            const auto paused = make(config);
            for (Time at{}; at < config.duration; at += base::microseconds(7)) {
                paused->run(at);
            }
            paused->run(config.duration);
            EXPECT_EQ(print(*paused), GetParam().fingerprint);
        },
        GetParam().config);
}

/// Cards and host buffers that run full: a card fills before a spike of its acknowledgement ends.
const OnRecord kWithCards =
    shift("ShiftWithCards", "b8fa605b258e1415", [](ShiftSystemConfig& config) {
        config.mfp_interval = base::microseconds(5);
        config.card_buffer = kMfpOnRecord;
        config.card_acknowledge = {.usual = {Kind::exponential, base::microseconds(1), {}},
                                   .spike = {Kind::fixed, base::microseconds(15), {}},
                                   .spike_probability = 0.05};
        config.buffered_mfps = 20;
        config.source_acknowledge = {Kind::exponential, base::microseconds(10), {}};
    });
const OnRecord kFlows{"Flows", "8b980c3c714ef828", flows()};
/// Packets that wait too long are discarded, and sent again after a NAK or a timeout.
const OnRecord kWithRetries =
    changed("FlowsWithRetries", "5cc0da27b7866156", flows(), [](FlowSystemConfig& config) {
        fabric_of(config).head_of_queue_lifetime = base::nanoseconds(700);
        rdma_of(config).retry_timeout = base::microseconds(20);
        rdma_of(config).retry_count = 2;
    });

const OnRecord kOnRecord[] = {
    barrier("ShiftWithoutBarrier", "1b775fe15cee9194", ShiftBarrier::none),
    barrier("ShiftWithAnIdealBarrier", "6ac4c3bbe0be195f", ShiftBarrier::external),
    barrier("ShiftWithACentralisedBarrier", "eeef3d6e24e51130", ShiftBarrier::centralised),
    barrier("ShiftWithATournament", "dda472983c831830", ShiftBarrier::tournament),
    barrier("ShiftWithADissemination", "25cd51ba0bc114cf", ShiftBarrier::dissemination),
    shift("ShiftWithSeveralPhasesABarrier", "b19ba299c721d107",
          [](ShiftSystemConfig& config) {
              config.meps_per_phase = 2;
              config.phases_per_barrier = 4;
              config.phases_under_way = 2;
          }),
    shift("ShiftByWindows", "a1028ace6b71b3f8",
          [](ShiftSystemConfig& config) {
              config.change = PhaseChange::by_time;
              config.barrier = ShiftBarrier::none;
              config.window = base::microseconds(8);
              config.grace = base::microseconds(2);
          }),
    shift("ShiftWithDummies", "e80ecbc006b97cbe",
          [](ShiftSystemConfig& config) {
              config.slots[2] = config.slots[7] = NodeIndex::none();
              config.mfp_bytes.resize(7);
          }),
    // Five hosts read, four build.
    shift("ShiftUnfolded", "13d404a2367e0301",
          [](ShiftSystemConfig& config) {
              config.slots = node_indices({0, 2, 4, 6, 8});
              config.builder_slots = node_indices({1, 3, 5, 7, NodeIndex::none().value()});
              config.mfp_bytes.resize(5);
          }),
    // Two streams a unit, of units in three groups with MFPs of different sizes.
    shift("ShiftOfStreamsAndGroups", "da84f9df559e3016",
          [](ShiftSystemConfig& config) {
              config.streams = 2;
              config.mfp_bytes.clear();
              for (const base::Bytes of_group : {20'000, 40'000, 60'000}) {
                  config.mfp_bytes.insert(config.mfp_bytes.end(), 6, of_group);
              }
              config.local_rate = base::gigabits_per_second(400);
          }),
    kWithCards,
    // Latencies drawn from a histogram of measured ones.
    shift("ShiftWithMeasuredLatency", "5ea31d54d0d5d57c",
          [](ShiftSystemConfig& config) {
              config.latency = {.kind = Kind::measured,
                                .values = {base::nanoseconds(300), base::nanoseconds(450),
                                           base::microseconds(1), base::microseconds(9)},
                                .cumulative_weights = {500, 900, 990, 1000}};
          }),
    // Adapters and memories slower than the network, switches of the simplest kind.
    shift("ShiftOnSlowHosts", "ac58a9abfc93c152",
          [](ShiftSystemConfig& config) {
              config.path.pcie_rate = base::gigabits_per_second(120);
              config.path.memory_rate = base::gigabits_per_second(400);
              fabric_of(config).input_queue = InputQueue::fifo;
              fabric_of(config).credit_release = CreditRelease::per_block;
              fabric_of(config).credit_update_interval = base::nanoseconds(150);
              fabric_of(config).buffer_blocks = 100;
          }),
    // Data and control messages on lanes of their own, and an unused third lane.
    shift("ShiftOnSeveralLanes", "7042484d6cb0f927",
          [](ShiftSystemConfig& config) {
              fabric_of(config).lanes = 3;
              fabric_of(config).arbitration.high = lane_weights({{2, 64}});
              fabric_of(config).arbitration.low = lane_weights({{0, 32}, {1, 64}});
              fabric_of(config).service_lanes = virtual_lanes({0, 1, 0, 2});
              fabric_of(config).crossbar_speedup = 2;
              config.data_service_level = 1;
              config.control_service_level = 3;
          }),
    changed("ShiftOnAnImportedFabric", "9ef8e972414c208b", shift_on(as_found()),
            [](ShiftSystemConfig& config) {
                config.slots = node_indices({4, 0, 5, 2, 1});
                config.mfp_bytes.resize(5);
            }),
    {"DaqpipePull", "9f8b2795cf5a729e", daqpipe()},
    changed("DaqpipePush", "13de1e35029822f4", daqpipe(),
            [](DaqpipeSystemConfig& config) { config.is_push = true; }),
    // DAQPIPE in time slots, with events at fixed times.
    changed("DaqpipeInTimeSlots", "b7e3419afbc7e03f", daqpipe(),
            [](DaqpipeSystemConfig& config) {
                config.slot = base::microseconds(7);
                config.event_interval = base::microseconds(4);
            }),
    kFlows,
    kWithRetries,
    changed("FlowsUnreliable", "66ab776dc627063e", flows(),
            [](FlowSystemConfig& config) { rdma_of(config).acknowledge = false; }),
};

INSTANTIATE_TEST_SUITE_P(Of, Fingerprint, ::testing::ValuesIn(kOnRecord),
                         [](const auto& system) { return system.param.name; });

/// The feature that gives a system its name must have an effect on its run.
TEST(Fingerprints, AreTakenOfRunsInWhichALotHappens) {
    for (const OnRecord& each : kOnRecord) {
        if (const auto* shift = std::get_if<ShiftSystemConfig>(&each.config)) {
            EXPECT_GT(run_through(*shift)->report().meps_built, 8U) << each.name;
        } else if (const auto* daqpipe = std::get_if<DaqpipeSystemConfig>(&each.config)) {
            EXPECT_GT(run_through(*daqpipe)->report().events_built, 50U) << each.name;
        }
    }
    const ShiftReport cards = run_through(std::get<ShiftSystemConfig>(kWithCards.config))->report();
    EXPECT_GT(cards.stopped_for_acknowledge, base::microseconds(10));
    EXPECT_GT(cards.stopped_for_memory, base::microseconds(10));
    const auto retried = run_through(std::get<FlowSystemConfig>(kWithRetries.config));
    const transport::RetryCounters retries = rdma_under(*retried).retries();
    EXPECT_GT(retries.resent_for_nak, 100U);
    EXPECT_GT(retries.resent_for_timeout, 10U);
    EXPECT_GT(retries.writes_failed, 0U);
    const auto flowed = run_through(std::get<FlowSystemConfig>(kFlows.config));
    EXPECT_GT(flowed->flows().counted()[0].messages, 500U);
    EXPECT_GT(flowed->flows().counted()[1].messages, 20U);
}

}  // namespace
}  // namespace daqloom::systems

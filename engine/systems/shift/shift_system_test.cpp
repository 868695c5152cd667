// Known answers of event building under linear shifting on a simulated fabric: phases, their
// conflicts and their order.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <set>

#include "base/random.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

// ---- conflicts ----------------------------------------------------------------------------------

/// Number of flows on the busiest link in a phase, by the forwarding tables.
std::uint32_t worst_link(const ShiftSystemConfig& config, std::uint32_t phase) {
    const FabricConfig& fabric = fabric_of(config);
    std::map<std::pair<NodeIndex, PortNumber>, End> other;
    for (const Cable& cable : fabric.cables) {
        other[{cable.a.node, cable.a.port}] = cable.b;
        other[{cable.b.node, cable.b.port}] = cable.a;
    }
    std::map<std::pair<NodeIndex, PortNumber>, std::uint32_t> flows;
    std::uint32_t worst = 0;
    const auto slots = static_cast<std::uint32_t>(config.slots.size());
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        const NodeIndex from = config.slots[slot];
        const NodeIndex to = config.slots[(slot + phase) % slots];
        if (from == NodeIndex::none() || to == NodeIndex::none() || from == to) {
            continue;
        }
        NodeIndex node = from;
        PortNumber port = 1;
        while (true) {
            worst = std::max(worst, ++flows[{node, port}]);
            node = other.at({node, port}).node;
            if (node == to) {
                break;
            }
            port = fabric.forwarding[std::size_t{node.value() - fabric.hosts} * fabric.hosts +
                                     to.value()];
        }
    }
    return worst;
}

/// Linear shifting without new MFPs after two rounds: the second round consists of writes only.
ShiftSystemConfig two_rounds_on(const FabricConfig& fabric) {
    ShiftSystemConfig config = system_on(fabric);
    config.source_acknowledge.mean = base::seconds(1);
    return config;
}

TEST(Conflicts, OfEqualFlowsOnOneLinkTakeAsManyTimesAsLong) {
    // With two leaves and one spine, n flows go up from each leaf in phase n ≤ m, then fewer again.
    const std::uint32_t m = 5;
    const ShiftSystemConfig config = two_rounds_on(fat_tree(2, 1, m));
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    for (std::uint32_t phase = 1; phase < 2 * m; ++phase) {
        const std::uint32_t flows = std::min(phase, 2 * m - phase);
        ASSERT_EQ(worst_link(config, phase), flows);
        const Time took = steps.took(2 * m + phase);
        // Round trip of head and acknowledgement through three switches.
        const Time round_trip = transfer(config, 3) - kAlone + Time{1};
        EXPECT_GE(took.ps, (kAlone * flows).ps) << phase;
        EXPECT_LE(took.ps, (kAlone * flows + round_trip + updates(3) * flows).ps) << phase;
    }
}

/// Puts the units of a system in a random order.
void shuffle_slots(ShiftSystemConfig& config, std::uint64_t seed) {
    base::RandomStream random(seed, "order of nodes");
    std::shuffle(config.slots.begin(), config.slots.end(), random);
}

TEST(Conflicts, OnSeveralLinksTakeAtLeastTheWorstOne) {
    ShiftSystemConfig config = two_rounds_on(fat_tree(4, 4, 4));
    shuffle_slots(config, 7);
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    std::set<std::uint32_t> loads;
    for (std::uint32_t phase = 1; phase < 16; ++phase) {
        const std::uint32_t worst = worst_link(config, phase);
        loads.insert(worst);
        const Time took = steps.took(16 + phase);
        EXPECT_GE(took.ps, (kAlone * worst).ps) << phase;
        // Upper bound: the flows of all links one after another.
        EXPECT_LE(took.ps, (kAlone * 16).ps) << phase;
    }
    EXPECT_GT(loads.size(), 1U);
}

TEST(Conflicts, AreNoneInTheOrderOfTheLeaves) {
    const ShiftSystemConfig config = two_rounds_on(fat_tree(4, 4, 4));
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    for (std::uint32_t phase = 1; phase < 16; ++phase) {
        ASSERT_EQ(worst_link(config, phase), 1U);
        EXPECT_LE(steps.took(16 + phase).ps, (transfer(config, 3) + updates(3)).ps) << phase;
    }
}

// ---- dummies ------------------------------------------------------------------------------------

/// MEPs per second in the steady state.
double event_rate(ShiftSystemConfig config, Time warmup, Time duration) {
    config.warmup = warmup;
    const ShiftReport report = play(config, warmup + duration)->report();
    return static_cast<double>(report.meps_built) / report.window.seconds();
}

TEST(Dummies, CostTheirShareOfTheEvents) {
    // Local copies take as long as transfers, so that all phases are alike.
    ShiftSystemConfig full = system_on(fat_tree(4, 4, 4));
    full.local_rate = base::gigabits_per_second(200);
    const Time warmup = base::microseconds(200);
    const Time duration = base::milliseconds(1);
    const double clean = event_rate(full, warmup, duration);
    const Time phase = transfer(full, 3);

    for (const auto& missing :
         {node_indices({6}), node_indices({3, 13}), node_indices({0, 1, 7, 10, 15})}) {
        SCOPED_TRACE(::testing::Message() << missing.size() << " hosts missing");
        ShiftSystemConfig dummies = full;
        ShiftSystemConfig gaps = full;
        for (const NodeIndex host : missing) {
            dummies.slots[host.value()] = NodeIndex::none();
            std::erase(gaps.slots, host);
        }
        dummies.mfp_bytes.assign(gaps.slots.size(), kMfp);
        gaps.mfp_bytes = dummies.mfp_bytes;
        const double r = static_cast<double>(gaps.slots.size());
        const double d = static_cast<double>(missing.size());
        const double with_dummies = event_rate(dummies, warmup, duration) / clean;
        EXPECT_NEAR(with_dummies, r / (r + d), 0.01);

        // Without dummies, two flows share some links in most phases, which then take longer.
        Time round;
        for (std::uint32_t n = 0; n < gaps.slots.size(); ++n) {
            round += phase + kAlone * (std::max(1U, worst_link(gaps, n)) - 1);
        }
        const double bound = r * static_cast<double>(phase.ps) / static_cast<double>(round.ps);
        const double without = event_rate(gaps, warmup, duration) / clean;
        EXPECT_LT(bound, 0.95);
        EXPECT_LE(without, 1.01 * bound);
        if (missing.size() == 1) {
            EXPECT_GT(with_dummies, without);
        }
    }
}

// ---- several MEPs a phase, units on nodes of their own ------------------------------------------

/// MFPs that a readout unit writes per second in the steady state.
double push_rate(ShiftSystemConfig config) {
    config.warmup = base::microseconds(400);
    const ShiftReport report = play(config, base::milliseconds(3))->report();
    return static_cast<double>(report.mfps_written) / report.window.seconds() /
           static_cast<double>(config.mfp_bytes.size());
}

TEST(MepsPerPhase, FollowEachOtherOnTheWire) {
    ShiftSystemConfig config = system_on(fat_tree(4, 4, 4));
    for (const std::uint32_t meps : {1U, 3U}) {
        config.meps_per_phase = meps;
        const Time phase = transfer(config, 3) + kAlone * (meps - 1);
        // In one of 16 phases, MFPs stay on their nodes.
        const double rate = 16 * meps / (15 * phase.seconds());
        EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
    }
}

TEST(Unfolded, EachReadoutUnitSendsAtTheRateOfItsLinkWithoutConflicts) {
    const FabricConfig fabric = fat_tree(4, 4, 4);
    const ShiftSystemConfig config = unfolded_on(fabric);
    const Time near = transfer(config, 1);
    const Time far = transfer(config, 3);
    ShiftSystemConfig finite = config;
    finite.source_acknowledge.mean = base::seconds(1);  // two rounds
    const auto system = play(finite, base::milliseconds(1));
    const Steps steps(*system);
    for (std::uint32_t step = 9; step < 16; ++step) {
        EXPECT_GE(steps.took(step).ps, far.ps) << step;
        EXPECT_LE(steps.took(step).ps, (far + updates(3)).ps) << step;
    }
    // In phase 0, units write to their neighbour on the same leaf.
    EXPECT_LE(steps.took(8).ps, (near + updates(1)).ps);

    // Every MFP arrives: 8 readout units, two rounds of 8 builder units.
    const ShiftReport report = system->report();
    EXPECT_EQ(report.mfps_written, 8U * 16U);
    EXPECT_EQ(report.meps_built, 16U);
    EXPECT_EQ(report.bytes_built, 8 * 16 * kMfp);
    EXPECT_EQ(report.bytes_written, report.bytes_built);

    const double rate = 8 / (near + far * 7).seconds();
    EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
}

TEST(Unfolded, WithAReadoutUnitTooManyIsADummysPhaseForEach) {
    ShiftSystemConfig config = system_on(star_200(5));
    config.slots = node_indices({0, 2, 4});
    config.builder_slots = node_indices({1, 3, NodeIndex::none().value()});
    config.mfp_bytes.assign(3, kMfp);
    const double rate = 2 / (3 * transfer(config).seconds());
    EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
}

TEST(Unfolded, ByWindowsOrWithSeveralMepsBooksBalance) {
    for (const bool by_time : {false, true}) {
        ShiftSystemConfig config = unfolded_on(fat_tree(3, 3, 3));  // five hosts read, four build
        config.slots = node_indices({0, 2, 4, 6, 8});
        config.builder_slots = node_indices({1, 3, 5, 7, NodeIndex::none().value()});
        config.mfp_bytes.assign(10, kMfp);
        config.streams = 2;
        config.fragment_sizes = protocol::FragmentSizes::poisson;
        config.clock_offset = base::nanoseconds(100);
        if (by_time) {
            config.change = PhaseChange::by_time;
            config.window = base::microseconds(20);
            config.grace = base::microseconds(5);
        } else {
            config.meps_per_phase = 3;
            config.phases_per_barrier = 5;
            config.barrier = ShiftBarrier::tournament;
        }
        const auto system = play(config, base::milliseconds(2));
        EXPECT_GT(system->report().meps_built, 100U);
        EXPECT_EQ(system->report().meps_discarded, 0U);
    }
}

/// In no phase are all writes local: there are four phases with messages instead of three. The
/// numbers of nodes and of messages do not depend on the order.
TEST(Folded, TheUnitsOfAHostCanHaveDifferentSlots) {
    ShiftSystemConfig config = system_on(star_200(4));
    config.builder_slots = node_indices({1, 0, 3, 2});
    const double rate = 4 / (4 * transfer(config).seconds());
    EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
    config.source_acknowledge.mean = base::seconds(1);  // two rounds
    const ShiftReport report = play(config, base::milliseconds(1))->report();
    EXPECT_EQ(report.mfps_written, 4U * 8U);
    EXPECT_EQ(report.meps_built, 8U);
}

TEST(ShiftSystem, ImpossibleConfigurationsAreRefused) {
    const auto refusal = [](ShiftSystemConfig config, auto spoil) {
        spoil(config);
        return base::message_of(ShiftSystem::make(config));
    };
    EXPECT_EQ(refusal(system_on(star_200(4)),
                      [](auto& config) {
                          config.meps_per_phase = 3;
                          config.buffered_mfps = 11;
                      }),
              "linear shift: buffers of 11 MFPs and 1099511627776 bytes; a round takes 12 MFPs, "
              "and room for 13 of 65536 bytes");
    EXPECT_EQ(refusal(system_on(star_200(4)), [](auto& config) { config.meps_per_phase = 1'001; }),
              "1001 MEPs per phase are 16016 MFPs in a round; give at most 1000 MEPs and 268435456 "
              "MFPs");
    EXPECT_EQ(refusal(system_on(star_200(4)),
                      [](auto& config) {
                          config.builder_slots = node_indices({1, 0, 3, 3});
                      }),
              "host 3 has two readout or two builder units; expected one of each at most");
    EXPECT_EQ(refusal(unfolded_on(star_200(4)),
                      [](auto& config) { config.builder_slots.push_back(NodeIndex::none()); }),
              "2 slots of readout and 3 of builder units; give as many");
    EXPECT_EQ(refusal(unfolded_on(star_200(4)),
                      [](auto& config) { config.builder_slots.assign(2, NodeIndex::none()); }),
              "linear shift: no builder unit; give at least one");
}

// ---- processors ---------------------------------------------------------------------------------

/// Each MFP, also one for the same node, is sent by a core at 50 Gb/s and received by one at 100
/// Gb/s.
TEST(Processors, ThatAreTheLimitBuildAtTheRateOfTheirCores) {
    constexpr std::uint32_t units = 4;
    ShiftSystemConfig config = system_on(star_200(units));
    config.barrier = ShiftBarrier::none;
    config.send_rate = base::gigabits_per_second(50);
    config.receive_rate = base::gigabits_per_second(100);
    const double of_mfp_s = kMfp * 8 * (1 / 50e9 + 1 / 100e9);
    for (const std::uint32_t cores : {1U, 2U}) {
        config.shared_cores = cores;
        const double meps = event_rate(config, base::milliseconds(1), base::milliseconds(10));
        EXPECT_NEAR(meps * units * of_mfp_s / cores, 1, 0.02) << cores;
    }
}

// ---- jitter: in step or not ---------------------------------------------------------------------

TEST(Jitter, InStepTheSlowestDecides) {
    // The longest of N exponential delays of mean J has a mean of J (1 + 1/2 + … + 1/N).
    for (const std::uint32_t units : {4U, 16U}) {
        ShiftSystemConfig config = system_on(star_200(units));
        config.local_rate = base::gigabits_per_second(200);
        const Time mean = base::microseconds(2);
        config.phase_jitter = exponential(mean);
        const auto system = play(config, base::milliseconds(12));
        const Steps steps(*system);
        const std::uint64_t rounds = 1000 / units;
        const Time took = steps.begun((rounds + 2) * units) - steps.begun(2 * units);
        double harmonic = 0;
        for (std::uint32_t k = 1; k <= units; ++k) {
            harmonic += 1.0 / k;
        }
        const auto n = static_cast<double>(units);
        const double phase =
            (static_cast<double>(transfer(config).ps) * (n - 1) + kMfp * kByte) / n;
        const double jitter = static_cast<double>(mean.ps);
        // The variance of the longest is J² (1 + 1/4 + …) < 1.65 J²: 4 standard deviations.
        const double doubt = 4 * jitter * std::sqrt(1.65 / 1000);
        EXPECT_NEAR(static_cast<double>(took.ps) / static_cast<double>(rounds * units),
                    phase + jitter * harmonic, doubt);
    }
}

TEST(Jitter, OutOfStepEachWaitsForItselfAlone) {
    ShiftSystemConfig in_step = system_on(star_200(8));
    in_step.local_rate = base::gigabits_per_second(200);
    ShiftSystemConfig loose = in_step;
    loose.barrier = ShiftBarrier::none;
    const auto gain = [&](Time warmup, Time duration) {
        return event_rate(loose, warmup, duration) / event_rate(in_step, warmup, duration);
    };
    // Without jitter, units stay in step without barriers for a while: a few ns of credit updates
    // in every round separate them in the end.
    EXPECT_NEAR(gain(base::microseconds(30), base::microseconds(280)), 1, 0.02);
    EXPECT_LT(gain(base::milliseconds(4), base::milliseconds(2)), 0.9);

    // With jitter and without barriers, a phase takes the mean delay longer instead of the longest
    // of eight (2.7 times as long), and some time for writes that meet at a receiver.
    const Time warmup = base::microseconds(200);
    const Time duration = base::milliseconds(4);
    const double clean = event_rate(in_step, warmup, duration);
    const Time mean = base::microseconds(1);
    in_step.phase_jitter = loose.phase_jitter = exponential(mean);
    EXPECT_GT(gain(warmup, duration), 1.02);
    EXPECT_LT(event_rate(loose, warmup, duration), 1 / (1 / clean + mean.seconds()));
}

}  // namespace
}  // namespace daqloom::systems

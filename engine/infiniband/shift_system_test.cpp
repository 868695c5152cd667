// Known answers of event building under linear shifting on a simulated fabric.
#include "infiniband/shift_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "infiniband/fabric_by_hand_test.hpp"

namespace daqloom::infiniband {
namespace {

using base::Time;
using protocol::LinearShift;
using protocol::PhaseChange;
using protocol::ShiftBarrier;
using protocol::ShiftStage;

constexpr base::Bytes kPackets = 16;  // of an MFP
constexpr base::Bytes kMfp = kPackets * 4096;
constexpr std::int64_t kByte = 40;  // ps, at 200 Gb/s

/// A unit on each host of a fabric, in their order, MFPs of one size, an ideal barrier.
ShiftSystemConfig system_on(const FabricConfig& fabric) {
    ShiftSystemConfig config;
    config.fabric = fabric;
    for (NodeIndex host = 0; host < fabric.hosts; ++host) {
        config.slots.push_back(host);
    }
    config.mfp_bytes.assign(fabric.hosts, kMfp);
    config.barrier = ShiftBarrier::external;
    return config;
}

FabricConfig star_200(std::uint32_t hosts, Time delay = base::nanoseconds(170)) {
    return star(hosts, base::gigabits_per_second(200), delay);
}

std::unique_ptr<ShiftSystem> play(const ShiftSystemConfig& config, Time until) {
    auto made = ShiftSystem::make(config);
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    (*made)->record_stages();
    (*made)->run(until);
    const auto conserved = (*made)->check_conservation();
    if (!conserved) {
        throw std::runtime_error(conserved.error().message);
    }
    return std::move(*made);
}

/// When the last unit got to each stage of each step.
struct Steps {
    explicit Steps(const ShiftSystem& system) {
        for (const auto& record : system.stages()) {
            Time& last = last_[{record.step, record.stage}];
            last = std::max(last, record.begin);
        }
    }
    [[nodiscard]] Time begun(std::uint64_t step) const {
        return last_.at({step, ShiftStage::entering});
    }
    [[nodiscard]] Time through(std::uint64_t step) const {
        return last_.at({step, ShiftStage::in_barrier});
    }

  private:
    std::map<std::pair<std::uint64_t, ShiftStage>, Time> last_;
};

// ---- how long messages and phases take, on paper
// --------------------------------------------------

/// A message of an idle network, from its first byte to its last: all of it on the wire, and of
/// each switch on the way its first block once more. Headers: 26 B a packet, 16 B for the address,
/// 4 B of immediate data.
struct Way {
    const FabricConfig& fabric;
    std::int64_t switches = 1;

    [[nodiscard]] Time of_wire(base::Bytes bytes) const {
        return Time{(bytes + switches * std::min<base::Bytes>(bytes, 64)) * kByte} +
               fabric.cables[0].delay * (switches + 1) + fabric.switch_latency * switches;
    }
    [[nodiscard]] Time of_control() const { return of_wire(32 + 26 + 16 + 4); }
    [[nodiscard]] Time of_mfp() const { return of_wire(kMfp + kPackets * 26 + 16 + 4); }
    [[nodiscard]] Time of_acknowledge() const { return of_wire(30); }
};

/// From a unit's turn until it knows that its MFP has been written.
Time transfer(const ShiftSystemConfig& config, std::int64_t switches = 1) {
    const Way way{config.fabric, switches};
    return config.message_cost + way.of_mfp() + way.of_acknowledge() + config.polling_delay;
}

/// What may be added to it: on each wire a credit update of 8 B for each packet, and an
/// acknowledge.
constexpr Time updates(std::int64_t switches = 1) {
    return Time{(switches + 1) * ((kPackets + 1) * 8 + 30) * kByte};
}

// ---- barriers
// ------------------------------------------------------------------------------------

/// Long cables, dear messages, and no new MFPs after two rounds: steps of nothing but writes and
/// barriers. Of a crossbar that sends one packet of an input at a time, a message may wait for the
/// whole MFP in front of it: see
/// Network.ACrossbarWithoutSpeedUpCanHoldASmallPacketUpForAWholeStream.
ShiftSystemConfig barrier_system(ShiftBarrier barrier, std::uint32_t units) {
    ShiftSystemConfig config = system_on(star_200(units, base::microseconds(1)));
    config.barrier = barrier;
    config.fabric.crossbar_speedup = 2;
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.source_acknowledge.mean = base::seconds(1);
    return config;
}

/// What a step takes beyond its transfer, when steps follow each other, by the messages on the
/// longest way from one release to the next. A message: o to send, w on the wire, p until noticed,
/// o to take in.
Time cost_on_paper(const ShiftSystemConfig& config) {
    const auto units = static_cast<std::int64_t>(config.slots.size());
    const Time o = config.message_cost;
    const Time message = o * 2 + Way{config.fabric}.of_control() + config.polling_delay;
    const std::int64_t rounds = std::bit_width(config.slots.size() - 1);
    switch (config.barrier) {
        case ShiftBarrier::none:
        case ShiftBarrier::external:
            return Time::zero();
        case ShiftBarrier::centralised:
            // The master's releases are o apart, N − 1 of them. So are then the entries, and the
            // master takes each report in as it comes: the last one released reports last.
            return message * 2 + o * (units - 2);
        case ShiftBarrier::tournament:
            // Down log2 N messages to the one released last, whose report goes the same way up;
            // each parent releases the largest subtree first.
            return message * (2 * rounds);
        case ShiftBarrier::dissemination:
            return message * rounds;
    }
    return Time::never();
}

class BarrierCost : public ::testing::TestWithParam<std::tuple<ShiftBarrier, std::uint32_t>> {};

TEST_P(BarrierCost, IsThatOfItsMessages) {
    const auto [barrier, units] = GetParam();
    const ShiftSystemConfig config = barrier_system(barrier, units);
    const auto system = play(config, base::milliseconds(5));
    const Steps steps(*system);
    std::vector<Time> periods;  // of the second half of the second round
    for (std::uint64_t step = 3 * units / 2; step < 2 * units; ++step) {
        periods.push_back(steps.begun(step + 1) - steps.begun(step));
    }
    const auto [shortest, longest] = std::ranges::minmax(periods);
    const Time paper = transfer(config) + cost_on_paper(config);
    EXPECT_GE(shortest.ps, paper.ps);
    EXPECT_LE(shortest.ps, (paper + updates() * 2).ps);
    // Of units that are not in step, a message may meet the MFP of another one: a packet of it on
    // each wire, and the message that it has come.
    const Time meeting = Time{2 * (4096 + 26 + 16) * kByte} + config.message_cost;
    const std::int64_t messages = barrier == ShiftBarrier::external ? 0
                                  : barrier == ShiftBarrier::centralised
                                      ? 2
                                      : 2 * std::bit_width(units - 1);
    EXPECT_LE(longest.ps, (paper + updates() * 2 + meeting * messages).ps);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BarrierCost,
    ::testing::Combine(::testing::Values(ShiftBarrier::centralised, ShiftBarrier::tournament,
                                         ShiftBarrier::dissemination, ShiftBarrier::external),
                       ::testing::Values(4U, 8U, 16U, 32U)));

/// What the report says of the barriers between two instants, per barrier.
struct PerBarrier {
    PerBarrier(ShiftSystemConfig config, std::uint64_t from_step, std::uint64_t to_step) {
        const Steps steps(*play(config, base::milliseconds(5)));
        const auto system = play(config, steps.begun(from_step) + Time{1});
        const ShiftReport before = system->report();
        system->run(steps.begun(to_step) + Time{1});
        const ShiftReport after = system->report();
        barriers = after.barriers - before.barriers;
        const auto mean = [&](Time later, Time earlier) {
            return static_cast<double>((later - earlier).ps) / static_cast<double>(barriers);
        };
        waiting = mean(after.waiting_for_slowest, before.waiting_for_slowest);
        releasing = mean(after.releasing, before.releasing);
        inside = mean(after.in_barrier, before.in_barrier);
        messages = static_cast<double>(after.control_messages - before.control_messages) /
                   static_cast<double>(barriers);
    }
    std::uint64_t barriers = 0;
    double waiting = 0;  // ps, sums over the units
    double releasing = 0;
    double inside = 0;
    double messages = 0;
};

TEST(Barriers, WaitingForTheSlowestAndReleasingAreReportedApart) {
    const std::int64_t n = 16;
    const ShiftSystemConfig config = barrier_system(ShiftBarrier::centralised, n);
    const PerBarrier found(config, 20, 28);
    const double o = static_cast<double>(config.message_cost.ps);
    const double c =
        o + static_cast<double>((Way{config.fabric}.of_control() + config.polling_delay).ps);
    // Unit k, 1 … N − 1, takes its release in k · o + c after the master, and is through as much
    // later. The master is through c before the last of them: its own write waits for the N − 1
    // releases that it sends. The last report is taken in o + c after the last entry.
    EXPECT_EQ(found.barriers, 8U);
    const double waiting = c + o * (n - 1) * (n - 2) / 2;
    const double releasing = (o + c) + (n - 1) * (o + 2 * c) + o * n * (n - 1) / 2;
    EXPECT_NEAR(found.waiting, waiting, 0.01 * waiting);
    EXPECT_NEAR(found.releasing, releasing, 0.01 * releasing);
    EXPECT_NEAR(found.inside, found.waiting + found.releasing, 1);
    EXPECT_EQ(found.messages, 2 * (n - 1));
}

TEST(Barriers, AllUnitsTogetherSpendTheirCostInThem) {
    for (const auto kind : {ShiftBarrier::tournament, ShiftBarrier::dissemination}) {
        const std::int64_t n = 16;
        const ShiftSystemConfig config = barrier_system(kind, n);
        const PerBarrier found(config, 20, 28);
        const auto inside = static_cast<double>(n * cost_on_paper(config).ps);
        EXPECT_NEAR(found.inside, inside, 0.01 * inside);
        // From cut to cut; some are in the next barrier before others have left this one.
        EXPECT_NEAR(found.messages, kind == ShiftBarrier::tournament ? 2 * (n - 1) : 4 * n, 1);
    }
}

TEST(Barriers, TheIdealOneCostsNothing) {
    const PerBarrier found(barrier_system(ShiftBarrier::external, 16), 20, 28);
    EXPECT_EQ(found.releasing, 0);
    EXPECT_LE(found.waiting, static_cast<double>(16 * updates().ps));
    EXPECT_EQ(found.messages, 0);
}

TEST(Barriers, OnceInSeveralPhasesCostAsMuchLess) {
    ShiftSystemConfig config = barrier_system(ShiftBarrier::dissemination, 16);
    config.phases_per_barrier = 4;
    const Steps steps(*play(config, base::milliseconds(5)));
    const Time paper = transfer(config) * 4 + cost_on_paper(config);
    const Time found = steps.begun(28) - steps.begun(24);
    EXPECT_GE(found.ps, paper.ps);
    EXPECT_LE(found.ps, (paper + updates() * 8).ps);
}

TEST(Barriers, OfPhasesWithSeveralMepsCostAsMuchLessForEach) {
    for (const std::uint32_t meps : {2U, 4U}) {
        ShiftSystemConfig config = barrier_system(ShiftBarrier::dissemination, 16);
        config.meps_per_phase = meps;
        const Steps steps(*play(config, base::milliseconds(20)));
        // Behind the first MFP the others follow on the wire.
        const Time alone{(kMfp + kPackets * 26 + 16 + 4) * kByte};
        const Time paper = transfer(config) + alone * (meps - 1) + cost_on_paper(config);
        const Time found = steps.begun(28) - steps.begun(24);
        EXPECT_GE(found.ps, (paper * 4).ps);
        EXPECT_LE(found.ps, (paper * 4 + updates() * (8 * meps)).ps);
    }
}

// ---- conflicts
// -----------------------------------------------------------------------------------

/// The number of flows on the busiest link in a phase, by the forwarding tables.
std::uint32_t worst_link(const ShiftSystemConfig& config, std::uint32_t phase) {
    const FabricConfig& fabric = config.fabric;
    std::map<std::pair<NodeIndex, PortIndex>, End> other;
    for (const Cable& cable : fabric.cables) {
        other[{cable.a.node, cable.a.port}] = cable.b;
        other[{cable.b.node, cable.b.port}] = cable.a;
    }
    std::map<std::pair<NodeIndex, PortIndex>, std::uint32_t> flows;
    std::uint32_t worst = 0;
    const auto slots = static_cast<std::uint32_t>(config.slots.size());
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
        const NodeIndex from = config.slots[slot];
        const NodeIndex to = config.slots[(slot + phase) % slots];
        if (from == LinearShift::nobody || to == LinearShift::nobody || from == to) {
            continue;
        }
        NodeIndex node = from;
        PortIndex port = 1;
        while (true) {
            worst = std::max(worst, ++flows[{node, port}]);
            node = other.at({node, port}).node;
            if (node == to) {
                break;
            }
            port = fabric.routes[std::size_t{node - fabric.hosts} * fabric.hosts + to];
        }
    }
    return worst;
}

/// No new MFPs after two rounds: in the second one, nothing but writes.
ShiftSystemConfig two_rounds_on(const FabricConfig& fabric) {
    ShiftSystemConfig config = system_on(fabric);
    config.source_acknowledge.mean = base::seconds(1);
    return config;
}

/// All of an MFP on a wire.
constexpr Time kAlone{(kMfp + kPackets * 26 + 16 + 4) * kByte};

TEST(Conflicts, OfEqualFlowsOnOneLinkTakeAsManyTimesAsLong) {
    // Two leaves and one spine: in phase n ≤ m, n flows go up from each leaf, then fewer again.
    const std::uint32_t m = 5;
    const ShiftSystemConfig config = two_rounds_on(fat_tree(2, 1, m));
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    for (std::uint32_t phase = 1; phase < 2 * m; ++phase) {
        const std::uint32_t flows = std::min(phase, 2 * m - phase);
        ASSERT_EQ(worst_link(config, phase), flows);
        const Time took = steps.through(2 * m + phase) - steps.begun(2 * m + phase);
        // There and back: the ways of head and acknowledge, through three switches.
        const Time round_trip = transfer(config, 3) - kAlone + Time{1};
        EXPECT_GE(took.ps, (kAlone * flows).ps) << phase;
        EXPECT_LE(took.ps, (kAlone * flows + round_trip + updates(3) * flows).ps) << phase;
    }
}

/// The units of a system in an order that has nothing to do with the fabric.
void shuffle_slots(ShiftSystemConfig& config, std::uint64_t seed) {
    base::RandomStream random(seed, "order of nodes");
    std::shuffle(config.slots.begin(), config.slots.end(), random);
}

TEST(Conflicts, OnSeveralLinksTakeAtLeastTheWorstOne) {
    ShiftSystemConfig config = two_rounds_on(fat_tree(4, 4, 4));
    shuffle_slots(config, 7);
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    std::set<std::uint32_t> seen;
    for (std::uint32_t phase = 1; phase < 16; ++phase) {
        const std::uint32_t worst = worst_link(config, phase);
        seen.insert(worst);
        const Time took = steps.through(16 + phase) - steps.begun(16 + phase);
        EXPECT_GE(took.ps, (kAlone * worst).ps) << phase;
        // And no more than if the flows of all links had to go one after the other.
        EXPECT_LE(took.ps, (kAlone * 16).ps) << phase;
    }
    EXPECT_GT(seen.size(), 1U);
}

TEST(Conflicts, AreNoneInTheOrderOfTheLeaves) {
    const ShiftSystemConfig config = two_rounds_on(fat_tree(4, 4, 4));
    const auto system = play(config, base::milliseconds(1));
    const Steps steps(*system);
    for (std::uint32_t phase = 1; phase < 16; ++phase) {
        ASSERT_EQ(worst_link(config, phase), 1U);
        const Time took = steps.through(16 + phase) - steps.begun(16 + phase);
        EXPECT_LE(took.ps, (transfer(config, 3) + updates(3)).ps) << phase;
    }
}

// ---- dummies
// -------------------------------------------------------------------------------------

/// MEPs per second in the steady state.
double event_rate(ShiftSystemConfig config, Time warmup, Time duration) {
    config.warmup = warmup;
    const ShiftReport report = play(config, warmup + duration)->report();
    return static_cast<double>(report.meps_built) / report.window.seconds();
}

TEST(Dummies, CostTheirShareOfTheEvents) {
    // A local copy takes as long as any transfer, so that all phases are alike.
    ShiftSystemConfig full = system_on(fat_tree(4, 4, 4));
    full.local_rate = base::gigabits_per_second(200);
    const Time warmup = base::microseconds(200);
    const Time duration = base::milliseconds(1);
    const double clean = event_rate(full, warmup, duration);
    const Time phase = transfer(full, 3);

    for (const std::vector<NodeIndex>& missing :
         {std::vector<NodeIndex>{6}, {3, 13}, {0, 1, 7, 10, 15}}) {
        SCOPED_TRACE(::testing::Message() << missing.size() << " hosts missing");
        ShiftSystemConfig dummies = full;
        ShiftSystemConfig gaps = full;
        for (const NodeIndex host : missing) {
            dummies.slots[host] = LinearShift::nobody;
            std::erase(gaps.slots, host);
        }
        dummies.mfp_bytes.assign(gaps.slots.size(), kMfp);
        gaps.mfp_bytes = dummies.mfp_bytes;
        const double r = static_cast<double>(gaps.slots.size());
        const double d = static_cast<double>(missing.size());
        const double with_dummies = event_rate(dummies, warmup, duration) / clean;
        EXPECT_NEAR(with_dummies, r / (r + d), 0.01);

        // Without them, two flows meet on some links in most phases: these take as much longer.
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

// ---- several MEPs a phase, units on nodes of their own
// ------------------------------------------------------------------------------------

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
        const double rate = 16 * meps / (15 * phase.seconds());  // one phase stays on the nodes
        EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
    }
}

TEST(MepsPerPhase, NeedBuffersForARound) {
    ShiftSystemConfig config = system_on(star_200(4));
    config.meps_per_phase = 3;
    config.buffered_mfps = 11;
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "linear shift: buffers of 11 MFPs and 1099511627776 bytes; a round takes 12 MFPs, "
              "and room for 13 of 65536 bytes");
    config.buffered_mfps = 0;
    config.meps_per_phase = 1'001;
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "1001 MEPs per phase are 16016 MFPs in a round; give at most 1000 MEPs and 268435456 "
              "MFPs");
}

/// Readout units on the even hosts, builder units on the odd ones.
ShiftSystemConfig unfolded_on(const FabricConfig& fabric) {
    ShiftSystemConfig config = system_on(fabric);
    config.slots.clear();
    for (NodeIndex host = 0; host < fabric.hosts; ++host) {
        (host % 2 == 0 ? config.slots : config.builder_slots).push_back(host);
    }
    config.slots.resize(config.builder_slots.size(), LinearShift::nobody);
    config.mfp_bytes.assign(fabric.hosts / 2, kMfp);
    return config;
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
        const Time took = steps.through(step) - steps.begun(step);
        EXPECT_GE(took.ps, far.ps) << step;
        EXPECT_LE(took.ps, (far + updates(3)).ps) << step;
    }
    // Phase 0 goes to the neighbour on the leaf.
    const Time first = steps.through(8) - steps.begun(8);
    EXPECT_LE(first.ps, (near + updates(1)).ps);

    // Every MFP at its builder: 8 readout units, two rounds of 8 builder units.
    const ShiftReport report = system->report();
    EXPECT_EQ(report.mfps_written, 8U * 16U);
    EXPECT_EQ(report.meps_built, 16U);
    EXPECT_EQ(report.bytes_built, 8 * 16 * kMfp);
    EXPECT_EQ(report.bytes_written, report.bytes_built);

    const double rate = 8 / (near + far * 7).seconds();
    EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
}

TEST(Unfolded, WithAReadoutUnitTooManyIsADummysPhaseForEach) {
    const ShiftSystemConfig config = [] {
        ShiftSystemConfig odd = system_on(star_200(5));
        odd.slots = {0, 2, 4};
        odd.builder_slots = {1, 3, LinearShift::nobody};
        odd.mfp_bytes.assign(3, kMfp);
        return odd;
    }();
    const double rate = 2 / (3 * transfer(config).seconds());
    EXPECT_NEAR(push_rate(config), rate, 0.01 * rate);
}

TEST(Unfolded, AnyBarrierIsAmongTheReadoutUnits) {
    for (const auto& [barrier, messages] :
         {std::pair{ShiftBarrier::centralised, 14.0}, std::pair{ShiftBarrier::tournament, 14.0},
          std::pair{ShiftBarrier::dissemination, 24.0}}) {
        ShiftSystemConfig config = unfolded_on(star_200(16));
        config.barrier = barrier;
        config.source_acknowledge.mean = base::seconds(1);
        // From step to step of the second round, when nothing is announced any more.
        EXPECT_NEAR(PerBarrier(config, 9, 15).messages, messages, 1);
    }
}

TEST(Unfolded, ByWindowsOrWithSeveralMepsBooksBalance) {
    for (const bool by_time : {false, true}) {
        ShiftSystemConfig config = unfolded_on(fat_tree(3, 3, 3));  // five hosts read, four build
        config.slots = {0, 2, 4, 6, 8};
        config.builder_slots = {1, 3, 5, 7, LinearShift::nobody};
        config.mfp_bytes.assign(10, kMfp);
        config.streams = 2;
        config.is_poissonian = true;
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

TEST(Unfolded, NeedsAsManySlotsOfBothKindsAndABuilderUnit) {
    ShiftSystemConfig config = unfolded_on(star_200(4));
    config.builder_slots.push_back(LinearShift::nobody);
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "2 slots of readout and 3 of builder units; give as many");
    config.builder_slots.assign(2, LinearShift::nobody);
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "linear shift: no builder unit; give at least one");
}

// ---- jitter: in step or not
// ----------------------------------------------------------------------

TEST(Jitter, InStepTheSlowestDecides) {
    // The longest of N exponential delays of mean J has a mean of J (1 + 1/2 + … + 1/N).
    for (const std::uint32_t units : {4U, 16U}) {
        ShiftSystemConfig config = system_on(star_200(units));
        config.local_rate = base::gigabits_per_second(200);
        const Time mean = base::microseconds(2);
        config.phase_jitter = {base::DelayDistribution::Kind::exponential, mean, {}};
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
    // Without jitter they stay in step by themselves, for a while: a few ns of credit updates in
    // every round are enough to part them in the end.
    EXPECT_NEAR(gain(base::microseconds(30), base::microseconds(280)), 1, 0.02);
    EXPECT_LT(gain(base::milliseconds(4), base::milliseconds(2)), 0.9);

    // With it, a phase takes the mean delay longer instead of the longest of eight (2.7 times as
    // much), and what it takes until those who meet at a receiver are through.
    const Time warmup = base::microseconds(200);
    const Time duration = base::milliseconds(4);
    const double clean = event_rate(in_step, warmup, duration);
    const Time mean = base::microseconds(1);
    in_step.phase_jitter = {base::DelayDistribution::Kind::exponential, mean, {}};
    loose.phase_jitter = in_step.phase_jitter;
    EXPECT_GT(gain(warmup, duration), 1.02);
    EXPECT_LT(event_rate(loose, warmup, duration), 1 / (1 / clean + mean.seconds()));
}

// ---- time windows
// --------------------------------------------------------------------------------

/// Each window has room for one MFP, whose transfer takes 2.6 µs of wire and less than a
/// microsecond of way, acknowledge and headers.
ShiftSystemConfig window_system(Time window, Time grace) {
    ShiftSystemConfig config = system_on(star_200(8));
    config.change = PhaseChange::by_time;
    config.barrier = ShiftBarrier::none;
    config.window = window;
    config.grace = grace;
    return config;
}

TEST(Windows, NoWriteIsUnderWayAtTheEndIfTheGraceCoversItsWayAndTheClocks) {
    const auto overran = [](const ShiftSystemConfig& config) {
        const auto system = play(config, base::milliseconds(4));
        const ShiftReport report = system->report();
        EXPECT_GT(report.meps_built, 500U);
        return report.writes_overran;
    };
    const Time wire{kMfp * kByte};
    const Time way = transfer(window_system({}, {})) - wire + updates();
    const Time slack = base::nanoseconds(100);
    EXPECT_EQ(overran(window_system(wire + slack + way, way)), 0U);
    EXPECT_GT(overran(window_system(wire + slack, Time::zero())), 0U);

    // Clocks that are off by up to 4 σ: who is late meets the next one at the receiver, and the two
    // share its link for as long as they overlap.
    const Time sigma = base::nanoseconds(500);
    ShiftSystemConfig off = window_system(wire + slack + way + sigma * 8, way + sigma * 8);
    off.clock_offset = sigma;
    EXPECT_EQ(overran(off), 0U);
    off = window_system(wire + slack + way, way);
    off.clock_offset = sigma;
    EXPECT_GT(overran(off), 0U);

    // A unit that enters its window late writes no longer than until the grace period, or not at
    // all.
    ShiftSystemConfig late = window_system(wire + sigma * 4 + way, way);
    late.phase_jitter = {base::DelayDistribution::Kind::uniform, sigma * 2, sigma * 2};
    EXPECT_EQ(overran(late), 0U);
}

TEST(Windows, NoWriteIsUnderWayAtTheEndWhereALinkIsSlower) {
    const Time wire{kMfp * kByte};
    const Time way = transfer(window_system({}, {})) - wire + updates();
    // A node of half the rate fills the window with one write; the others have time for no second
    // to it.
    ShiftSystemConfig config = window_system(wire * 2 + way * 2 + base::nanoseconds(100), way * 2);
    config.fabric.cables.back().rate.bps /= 2;
    const auto system = play(config, base::milliseconds(4));
    EXPECT_GT(system->report().meps_built, 200U);
    EXPECT_EQ(system->report().writes_overran, 0U);
}

TEST(Windows, TheFabricIsEmptyAtTheEndOfEach) {
    // The grace period is long enough for the next sizes and places to be exchanged, too.
    const Time wire{kMfp * kByte};
    const Time window = wire + base::microseconds(5);
    const auto system = play(window_system(window, base::microseconds(4)), window * 10);
    for (std::int64_t end = 11; end < 100; ++end) {
        system->run(window * end - wire / 2);
        EXPECT_EQ(system->network().in_network(), 0U) << end;
        system->run(window * end + wire / 2);
        EXPECT_EQ(system->network().in_network() > 0, end % 8 != 0) << end;  // but for local copies
    }
}

/// By how much the units open the window of a step later than an exact clock would.
std::vector<double> lateness(const ShiftSystem& system, std::uint64_t step) {
    std::vector<double> all;
    for (const auto& record : system.stages()) {
        if (record.step == step &&
            (record.stage == ShiftStage::sending || record.stage == ShiftStage::idle)) {
            const Time exact = system.config().window * static_cast<std::int64_t>(step);
            all.push_back(static_cast<double>((record.begin - exact).ps));
        }
    }
    return all;
}

double standard_deviation(const std::vector<double>& values) {
    double sum = 0;
    double squares = 0;
    for (const double value : values) {
        sum += value;
        squares += value * value;
    }
    const auto n = static_cast<double>(values.size());
    return std::sqrt(squares / n - sum * sum / (n * n));
}

TEST(Windows, AreShiftedByTheOffsetsOfTheClocks) {
    ShiftSystemConfig config = system_on(star_200(100));
    config.change = PhaseChange::by_time;
    config.window = base::microseconds(10);
    config.grace = base::microseconds(5);
    config.mfp_interval = base::seconds(1);  // nothing to send
    config.clock_offset = base::nanoseconds(500);
    const auto system = play(config, base::microseconds(300));
    const std::vector<double> early = lateness(*system, 5);
    const std::vector<double> late = lateness(*system, 25);
    ASSERT_EQ(early.size(), 100U);
    // An estimate of σ from 100 units is off by σ / √200: four times that.
    EXPECT_NEAR(standard_deviation(early), 500e3, 4 * 500e3 / std::sqrt(200.0));
    for (std::size_t i = 0; i < early.size(); ++i) {
        EXPECT_NEAR(early[i], late[i], 2);  // they stay where they are
    }
}

TEST(Windows, DriftApartAsTheClocksDo) {
    ShiftSystemConfig config = system_on(star_200(100));
    config.change = PhaseChange::by_time;
    config.window = base::microseconds(10);
    config.grace = base::microseconds(5);
    config.mfp_interval = base::seconds(1);
    config.clock_drift = 1e-4;
    const auto system = play(config, base::microseconds(500));
    const std::vector<double> early = lateness(*system, 20);
    const std::vector<double> late = lateness(*system, 40);
    EXPECT_NEAR(standard_deviation(late), 1e-4 * 400e6, 4 * 1e-4 * 400e6 / std::sqrt(200.0));
    for (std::size_t i = 0; i < early.size(); ++i) {
        EXPECT_NEAR(late[i], 2 * early[i], 10);
    }
}

// ---- buffers that are too small
// ------------------------------------------------------------------

TEST(Buffers, ASourceWaitsWhereItsAcknowledgeIsSlow) {
    // A stream has room for 8 MFPs, each of which stays until its acknowledge: at most 8 in that
    // time (Little), less those for the rounds in which they wait for their turns.
    ShiftSystemConfig config = system_on(star_200(4));
    config.buffered_mfps = 8;
    config.mfp_interval = base::microseconds(10);  // a phase takes less than 4
    const ShiftReport quick = play(config, base::milliseconds(20))->report();
    EXPECT_EQ(quick.mfps_blocked, 0U);
    EXPECT_NEAR(static_cast<double>(quick.meps_built), 2000, 16);

    const Time slow = base::milliseconds(1);
    std::vector<std::uint64_t> built;
    for (const auto kind :
         {base::DelayDistribution::Kind::fixed, base::DelayDistribution::Kind::exponential}) {
        config.source_acknowledge = {kind, slow, {}};
        const ShiftReport blocked = play(config, base::milliseconds(20))->report();
        EXPECT_GT(blocked.mfps_blocked, 0U);
        built.push_back(blocked.meps_built);
    }
    EXPECT_LE(built[0], 8 * 20U);
    EXPECT_GE(built[0], 8 * 19U);
    // Spikes cost more than their mean: an event waits for the slowest of its sources.
    EXPECT_LT(built[1], built[0]);
}

// ---- cards that are too small
// --------------------------------------------------------------------

/// A stream on each of some units, an MFP every 10 µs, which takes less than 4 µs to be sent.
ShiftSystemConfig card_system(std::uint32_t units, Time acknowledge) {
    ShiftSystemConfig config = system_on(star_200(units));
    config.mfp_interval = base::microseconds(10);
    config.card_buffer = kMfp / 2;  // bridges 5 µs
    config.card_acknowledge.spike.mean = acknowledge;
    return config;
}

TEST(Cards, AreFullForAsLongAsAnAcknowledgeIsLongerThanTheyBridge) {
    const Time duration = base::milliseconds(20);
    ShiftSystemConfig config = card_system(4, base::microseconds(5));
    config.card_acknowledge.spike_probability = 1;
    const ShiftReport bridged = play(config, duration)->report();
    EXPECT_EQ(bridged.stopped_for_acknowledge, Time::zero());
    EXPECT_NEAR(static_cast<double>(bridged.meps_built), 2000, 16);

    // 8 µs: 3 µs in which the trigger stands still, with every MFP, which come every 13 µs.
    config.card_acknowledge.spike.mean = base::microseconds(8);
    const ShiftReport slow = play(config, duration)->report();
    EXPECT_NEAR(slow.stopped_for_acknowledge.seconds(), 20e-3 * 3 / 13, 3e-6);
    EXPECT_EQ(slow.stopped_for_memory, Time::zero());
    EXPECT_NEAR(static_cast<double>(slow.meps_built), 20e3 / 13, 16);
}

TEST(Cards, StopTheTriggerForEachSpike) {
    // One unit: no two spikes at a time, of which each costs 3 µs.
    ShiftSystemConfig config = card_system(1, base::microseconds(8));
    config.card_acknowledge.spike_probability = 0.1;
    const Time duration = base::milliseconds(100);
    const ShiftReport report = play(config, duration)->report();
    const std::int64_t spikes = report.stopped_for_acknowledge.ps / base::microseconds(3).ps;
    EXPECT_EQ(report.stopped_for_acknowledge, base::microseconds(3) * spikes);
    EXPECT_NEAR(static_cast<double>(spikes), 1000, 4 * std::sqrt(10'000 * 0.1 * 0.9) + 30);
    const Time ran = duration - report.stopped_for_acknowledge;
    EXPECT_NEAR(static_cast<double>(report.meps_built), ran.seconds() / 10e-6, 3);
}

TEST(Cards, OfAnyUnitStopTheTriggerForAll) {
    // Spikes of eight units: of those of one MFP, the trigger stands still for one.
    ShiftSystemConfig config = card_system(8, base::microseconds(8));
    config.card_acknowledge.spike_probability = 0.1;
    const Time duration = base::milliseconds(100);
    const ShiftReport report = play(config, duration)->report();
    // MFPs of all units are complete at the same instant, and taken in.
    const double any = 1 - std::pow(0.9, 8);
    const double mfps = 100e3 / (10 + 3 * any);
    EXPECT_NEAR(report.stopped_for_acknowledge.seconds() / 3e-6, mfps * any,
                4 * std::sqrt(mfps * any * (1 - any)));
}

TEST(Cards, AreFullWhereTheHostsMemoryIs) {
    // Room for a round of MFPs that stay for a millisecond each.
    ShiftSystemConfig config = card_system(4, Time::zero());
    config.buffered_mfps = 8;
    config.source_acknowledge.mean = base::milliseconds(1);
    const Time duration = base::milliseconds(20);
    const ShiftReport report = play(config, duration)->report();
    EXPECT_LE(report.meps_built, 8 * 20U);
    EXPECT_EQ(report.stopped_for_acknowledge, Time::zero());
    // What is built, waits, or is on a card has come in while the trigger ran.
    const Time ran = duration - report.stopped_for_memory;
    EXPECT_NEAR(ran.seconds() / 10e-6, static_cast<double>(report.meps_built), 8 + 2);
}

TEST(Cards, WithABufferNeedARate) {
    ShiftSystemConfig config = card_system(2, Time::zero());
    config.mfp_interval = Time::zero();
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "cards with a buffer, and no rate at which it fills");
}

TEST(Buffers, ABuilderThatCannotCopeDiscardsAndHoldsNobodyUp) {
    // Room for two MEPs of 4 MFPs, one being built and one that comes next.
    ShiftSystemConfig config = system_on(star_200(4));
    config.output_buffer = 9 * kMfp;
    const Time duration = base::milliseconds(4);
    const ShiftReport quick = play(config, duration)->report();
    EXPECT_EQ(quick.meps_discarded, 0U);

    // Each keeps its room for 200 µs more: two in that time, and the rest, 20 times as much, is
    // discarded. What is discarded need not be sent: the steps go on, the faster for it.
    config.processing.mean = base::microseconds(200);
    const ShiftReport slow = play(config, duration)->report();
    EXPECT_LE(slow.meps_built, 4 * 2 * 20U);
    EXPECT_GE(slow.meps_built, 4 * 2 * 16U);
    EXPECT_GE(slow.meps_built + slow.meps_discarded, quick.meps_built);
    EXPECT_GE(slow.steps, quick.steps);
}

// ---- the same again
// ------------------------------------------------------------------------------

ShiftSystemConfig random_system(std::uint64_t seed) {
    ShiftSystemConfig config = system_on(fat_tree(3, 3, 3));
    config.barrier = ShiftBarrier::tournament;
    config.is_poissonian = true;
    config.message_cost = base::nanoseconds(200);
    config.polling_delay = base::nanoseconds(100);
    const auto exponential = base::DelayDistribution::Kind::exponential;
    config.latency = {exponential, base::nanoseconds(500), {}};
    config.phase_jitter = {exponential, base::microseconds(1), {}};
    config.processing = {exponential, base::microseconds(5), {}};
    config.source_acknowledge = {exponential, base::microseconds(1), {}};
    config.seed = seed;
    return config;
}

TEST(ShiftSystem, TheSameSeedGivesTheSameRun) {
    const auto fates = [](std::uint64_t seed) {
        const auto system = play(random_system(seed), base::milliseconds(1));
        std::vector<std::int64_t> times;
        for (const auto& record : system->stages()) {
            times.push_back(record.begin.ps);
        }
        const ShiftReport report = system->report();
        times.push_back(report.bytes_built);
        times.push_back(report.releasing.ps);
        times.push_back(static_cast<std::int64_t>(system->sim_events()));
        return times;
    };
    const auto first = fates(1);
    EXPECT_GT(first.size(), 1000U);
    EXPECT_EQ(first, fates(1));
    EXPECT_NE(first, fates(2));
}

}  // namespace
}  // namespace daqloom::infiniband

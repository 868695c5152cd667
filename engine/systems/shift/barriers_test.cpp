// Known costs of the barriers of linear shifting on a simulated fabric.
#include <gtest/gtest.h>

#include <bit>
#include <tuple>
#include <vector>

#include "systems/fabric_parts_test.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

/// Time of a step beyond its transfer: the messages on the longest path from one release to the
/// next. A message takes o to send, w on the wire, p until it is noticed, and o to receive.
Time cost_on_paper(const ShiftSystemConfig& config) {
    const auto units = static_cast<std::int64_t>(config.slots.size());
    const Time o = config.message_cost;
    const Time message = o * 2 + Way{fabric_of(config)}.of_control() + config.polling_delay;
    const std::int64_t rounds = std::bit_width(config.slots.size() - 1);
    switch (config.barrier) {
        case ShiftBarrier::none:
        case ShiftBarrier::external:
            return Time::zero();
        case ShiftBarrier::centralised:
            // The N − 1 releases of the master are o apart, and so are the entries. The master
            // receives each report as it comes: the unit released last reports last.
            return message * 2 + o * (units - 2);
        case ShiftBarrier::tournament:
            // The release takes log2 N messages to the unit released last, and its report as many
            // messages back; each parent releases the largest subtree first.
            return message * (2 * rounds);
        case ShiftBarrier::dissemination:
            return message * rounds;
        case ShiftBarrier::neighbour:
            return message;
        case ShiftBarrier::network:
            return network_barrier(config);
    }
    return Time::never();
}

class BarrierCost : public ::testing::TestWithParam<std::tuple<ShiftBarrier, std::uint32_t>> {};

TEST_P(BarrierCost, IsThatOfItsMessages) {
    const auto [barrier, units] = GetParam();
    const ShiftSystemConfig config = barrier_system(barrier, units);
    const auto system = play(config, base::milliseconds(5));
    const Steps steps(*system);
    std::vector<Time> periods;  // steps in the second half of the second round
    for (std::uint64_t step = 3 * units / 2; step < 2 * units; ++step) {
        periods.push_back(steps.begun(step + 1) - steps.begun(step));
    }
    const auto [shortest, longest] = std::ranges::minmax(periods);
    const Time paper = transfer(config) + cost_on_paper(config);
    EXPECT_GE(shortest.ps, paper.ps);
    EXPECT_LE(shortest.ps, (paper + updates() * 2).ps);
    // If units are out of step, a message of one may meet the MFP of another: it waits for a packet
    // of the MFP on each wire, and for the message of the MFP's arrival.
    const Time meeting = Time{2 * (4096 + 26 + 16) * kByte} + config.message_cost;
    const std::int64_t messages = protocol::is_outside(barrier) ? 0
                                  : barrier == ShiftBarrier::centralised
                                      ? 2
                                      : 2 * std::bit_width(units - 1);
    EXPECT_LE(longest.ps, (paper + updates() * 2 + meeting * messages).ps);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, BarrierCost,
    ::testing::Combine(::testing::Values(ShiftBarrier::centralised, ShiftBarrier::tournament,
                                         ShiftBarrier::dissemination, ShiftBarrier::neighbour,
                                         ShiftBarrier::external, ShiftBarrier::network),
                       ::testing::Values(4U, 8U, 16U, 32U)));

/// Reported times of the barriers between two instants, per barrier.
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
    double waiting = 0;  ///< ps, sums over the units
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
        o + static_cast<double>((Way{fabric_of(config)}.of_control() + config.polling_delay).ps);
    // Unit k, 1 … N − 1, receives its release k · o + c after the master and ends its step that
    // much later. The master ends its step c before the last unit: its own write waits for the N −
    // 1 releases that it sends. The last report is received o + c after the last entry.
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
        // Messages between two instants; some units enter the next barrier before others leave this
        // one.
        EXPECT_NEAR(found.messages, kind == ShiftBarrier::tournament ? 2 * (n - 1) : 4 * n, 1);
    }
}

TEST(Barriers, TheIdealOneCostsNothing) {
    const PerBarrier found(barrier_system(ShiftBarrier::external, 16), 20, 28);
    EXPECT_EQ(found.releasing, 0);
    EXPECT_LE(found.waiting, static_cast<double>(16 * updates().ps));
    EXPECT_EQ(found.messages, 0);
}

TEST(Barriers, ThatOfTheNetworkTakesNoMessagesOfHosts) {
    const ShiftSystemConfig config = barrier_system(ShiftBarrier::network, 16);
    const PerBarrier found(config, 20, 28);
    EXPECT_EQ(found.releasing, static_cast<double>(16 * network_barrier(config).ps));
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
        // The other MFPs follow the first one on the wire.
        const Time alone{(kMfp + kPackets * 26 + 16 + 4) * kByte};
        const Time paper = transfer(config) + alone * (meps - 1) + cost_on_paper(config);
        const Time found = steps.begun(28) - steps.begun(24);
        EXPECT_GE(found.ps, (paper * 4).ps);
        EXPECT_LE(found.ps, (paper * 4 + updates() * (8 * meps)).ps);
    }
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

}  // namespace
}  // namespace daqloom::systems

// Linear shifting whose units may leave step: distance between the units, and gain in throughput.
#include <gtest/gtest.h>

#include <vector>

#include "protocol/schedule/step_keeper.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

constexpr std::uint32_t kUnitsInStep = 9;  ///< and as many barriers in a round

ShiftSystemConfig behind(ShiftBarrier barrier) {
    ShiftSystemConfig config = system_on(star_200(kUnitsInStep));
    fabric_of(config).crossbar_speedup = 2;
    config.mfp_bytes.assign(kUnitsInStep, 4 * kMfp);
    config.barrier = barrier;
    return config;
}
ShiftSystemConfig late(ShiftSystemConfig config) {
    config.phase_jitter = exponential(base::microseconds(3));
    return config;
}

class LeavingStep : public ::testing::TestWithParam<ShiftBarrier> {};

TEST_P(LeavingStep, NoNodeBeginsARoundBeforeAllHaveFinishedTheLastOne) {
    for (const std::uint32_t slack : {0U, 2U}) {
        ShiftSystemConfig config = late(behind(GetParam()));
        config.leaves_step = true;
        config.barrier_slack = slack;
        const auto system = play(config, base::milliseconds(10));
        std::vector<std::uint64_t> step(kUnitsInStep, 0);
        std::uint64_t most = 0;
        for (const auto& each : system->stages()) {
            step[each.unit.value()] = each.step;
            const auto [last, first] = std::ranges::minmax(step);
            most = std::max(most, first - last);
            // A unit that has finished the last step of a round is still in that step.
            ASSERT_GE(last + slack + 1, first / kUnitsInStep * kUnitsInStep);
        }
        if (slack == 0) {
            EXPECT_GT(most, 1U) << "they do leave step";
        }
        const ShiftReport report = system->report();
        EXPECT_GT(report.barriers_passed, 0U);
        EXPECT_GT(report.barriers, 100U);
        EXPECT_EQ(report.unexpected, 0U);
        const Time parts = report.waiting_for_slowest + report.releasing;
        EXPECT_LE(parts, report.in_barrier);
        EXPECT_GE(parts.seconds(), 0.9 * report.in_barrier.seconds());
    }
}

/// If no unit is late, a phase takes a write and a barrier in step, and the longer of both out of
/// step.
TEST_P(LeavingStep, WritesAsMuchAsTheBestFixedNumberOfPhasesPerBarrier) {
    const auto written = [&](bool leaves_step, std::uint32_t phases) {
        ShiftSystemConfig config = behind(GetParam());
        config.leaves_step = leaves_step;
        config.phases_per_barrier = phases;
        config.warmup = base::milliseconds(3);
        return static_cast<double>(play(config, base::milliseconds(9))->report().bytes_written);
    };
    const double in_step = written(false, 1);
    const double best = std::max({in_step, written(false, 4), written(false, kUnitsInStep)});
    if (GetParam() != ShiftBarrier::external) {
        EXPECT_GT(best, 1.05 * in_step);
    }
    EXPECT_GE(written(true, 1), 0.97 * best);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LeavingStep,
                         ::testing::Values(ShiftBarrier::centralised, ShiftBarrier::tournament,
                                           ShiftBarrier::dissemination, ShiftBarrier::external));

/// If no unit is late and the barrier costs nothing, all phases take equally long. While units try
/// to leave step, they wait at the fourth, the eighth and the last of the nine barriers of a round.
TEST(LeavingStep, StaysInStepWhereNothingIsGained) {
    ShiftSystemConfig config = behind(ShiftBarrier::external);
    config.leaves_step = true;
    const auto system = play(config, base::milliseconds(2));
    const ShiftReport report = system->report();
    const std::uint64_t rounds = report.steps / kUnitsInStep / kUnitsInStep;
    ASSERT_GT(rounds, 10U);
    ASSERT_LT(rounds, protocol::StepKeeper::rounds_between_trials);
    EXPECT_EQ(report.barriers_passed,
              (1 + protocol::StepKeeper::rounds_judged) * kUnitsInStep * (9U - 3U));
}

}  // namespace
}  // namespace daqloom::systems

// Known answers of linear shifting by time windows on a simulated fabric.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "base/goodness_of_fit_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

/// Linear shifting by windows with room for one MFP: 2.6 µs on the wire, and less than a
/// microsecond for latency, acknowledgement and headers.
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

    // Clocks are off by up to 4 σ: a late unit meets the next one at the receiver, and both share
    // the receiver's link while they overlap.
    const Time sigma = base::nanoseconds(500);
    ShiftSystemConfig off = window_system(wire + slack + way + sigma * 8, way + sigma * 8);
    off.clock_offset = sigma;
    EXPECT_EQ(overran(off), 0U);
    off = window_system(wire + slack + way, way);
    off.clock_offset = sigma;
    EXPECT_GT(overran(off), 0U);

    // A unit that enters its window late writes until the grace period at most, or not at all.
    ShiftSystemConfig late = window_system(wire + sigma * 4 + way, way);
    late.phase_jitter = {base::DelayDistribution::Kind::uniform, sigma * 2, sigma * 2};
    EXPECT_EQ(overran(late), 0U);
}

TEST(Windows, NoWriteIsUnderWayAtTheEndWhereALinkIsSlower) {
    const Time wire{kMfp * kByte};
    const Time way = transfer(window_system({}, {})) - wire + updates();
    // A node of half the rate needs the whole window for one write; other nodes have no time for a
    // second write to it.
    ShiftSystemConfig config = window_system(wire * 2 + way * 2 + base::nanoseconds(100), way * 2);
    fabric_of(config).cables.back().rate.bps /= 2;
    const auto system = play(config, base::milliseconds(4));
    EXPECT_GT(system->report().meps_built, 200U);
    EXPECT_EQ(system->report().writes_overran, 0U);
}

TEST(Windows, TheFabricIsEmptyAtTheEndOfEach) {
    // The grace period is long enough to exchange the next sizes and offsets.
    const Time wire{kMfp * kByte};
    const Time window = wire + base::microseconds(5);
    const auto system = play(window_system(window, base::microseconds(4)), window * 10);
    for (std::int64_t end = 11; end < 100; ++end) {
        system->run(window * end - wire / 2);
        EXPECT_EQ(network_under(*system).in_network(), 0U) << end;
        system->run(window * end + wire / 2);
        EXPECT_EQ(network_under(*system).in_network() > 0, end % 8 != 0)
            << end;  // but for local copies
    }
}

/// Lateness of each unit in opening the window of a step, compared with an exact clock.
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

/// Linear shifting of a hundred units with windows of 10 us and nothing to send.
ShiftSystemConfig idle_windows() {
    ShiftSystemConfig config = system_on(star_200(100));
    config.change = PhaseChange::by_time;
    config.window = base::microseconds(10);
    config.grace = base::microseconds(5);
    config.mfp_interval = base::seconds(1);
    return config;
}

TEST(Windows, AreShiftedByTheOffsetsOfTheClocks) {
    ShiftSystemConfig config = idle_windows();
    config.clock_offset = base::nanoseconds(500);
    const auto system = play(config, base::microseconds(300));
    const std::vector<double> early = lateness(*system, 5);
    const std::vector<double> late = lateness(*system, 25);
    ASSERT_EQ(early.size(), 100U);
    // The standard error of σ from 100 units is σ / √200; the tolerance is four times as large.
    EXPECT_NEAR(std::sqrt(base::moments_of(early).variance), 500e3, 4 * 500e3 / std::sqrt(200.0));
    for (std::size_t i = 0; i < early.size(); ++i) {
        EXPECT_NEAR(early[i], late[i], 2);  // offsets of clocks are constant
    }
}

TEST(Windows, DriftApartAsTheClocksDo) {
    ShiftSystemConfig config = idle_windows();
    config.clock_drift = 1e-4;
    const auto system = play(config, base::microseconds(500));
    const std::vector<double> early = lateness(*system, 20);
    const std::vector<double> late = lateness(*system, 40);
    EXPECT_NEAR(std::sqrt(base::moments_of(late).variance), 1e-4 * 400e6,
                4 * 1e-4 * 400e6 / std::sqrt(200.0));
    for (std::size_t i = 0; i < early.size(); ++i) {
        EXPECT_NEAR(late[i], 2 * early[i], 10);
    }
}

}  // namespace
}  // namespace daqloom::systems

// Known answers of linear shifting on a simulated fabric whose host buffers or card buffers are too
// small.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "systems/shift/closed_form_test.hpp"

namespace daqloom::systems {
namespace {

TEST(Buffers, ASourceWaitsWhereItsAcknowledgeIsSlow) {
    // A stream has room for 8 MFPs, each of which stays until its acknowledgement. By Little's law
    // at most 8 MFPs are taken in that time, fewer because MFPs also wait for their phases.
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
    // Spikes cost more than their mean, because an event waits for its slowest source.
    EXPECT_LT(built[1], built[0]);
}

TEST(Buffers, AnOverloadedBuilderDiscardsAndDelaysNoOther) {
    // Room for two MEPs of 4 MFPs: the current one and the next one.
    ShiftSystemConfig config = system_on(star_200(4));
    config.output_buffer = 9 * kMfp;
    const Time duration = base::milliseconds(4);
    const ShiftReport quick = play(config, duration)->report();
    EXPECT_EQ(quick.meps_discarded, 0U);

    // A MEP keeps its room for another 200 µs: two MEPs are built in that time, and the others, 20
    // times as many, are discarded. Discarded MEPs are not sent, so that steps become faster.
    config.processing = {{.mean = base::microseconds(150)}, {.mean = base::microseconds(50)}};
    const ShiftReport slow = play(config, duration)->report();
    EXPECT_LE(slow.meps_built, 4 * 2 * 20U);
    EXPECT_GE(slow.meps_built, 4 * 2 * 16U);
    EXPECT_GE(slow.meps_built + slow.meps_discarded, quick.meps_built);
    EXPECT_GE(slow.steps, quick.steps);
}

// ---- cards that are too small -------------------------------------------------------------------

/// Linear shifting with one stream in each unit and an MFP every 10 µs, which is sent in less than
/// 4 µs.
ShiftSystemConfig card_system(std::uint32_t units, Time acknowledge) {
    ShiftSystemConfig config = system_on(star_200(units));
    config.mfp_interval = base::microseconds(10);
    config.card_buffer = kMfp / 2;  // room for the data of 5 µs
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

    // Acknowledgements after 8 µs stop the trigger for 3 µs with every MFP: one comes every 13 µs.
    config.card_acknowledge.spike.mean = base::microseconds(8);
    const ShiftReport slow = play(config, duration)->report();
    EXPECT_NEAR(slow.stopped_for_acknowledge.seconds(), 20e-3 * 3 / 13, 3e-6);
    EXPECT_EQ(slow.stopped_for_memory, Time::zero());
    EXPECT_NEAR(static_cast<double>(slow.meps_built), 20e3 / 13, 16);
}

TEST(Cards, StopTheTriggerForEachSpike) {
    // With one unit, spikes do not overlap, and each costs 3 µs.
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
    // With eight units, simultaneous spikes stop the trigger once.
    ShiftSystemConfig config = card_system(8, base::microseconds(8));
    config.card_acknowledge.spike_probability = 0.1;
    const Time duration = base::milliseconds(100);
    const ShiftReport report = play(config, duration)->report();
    // MFPs of all units are complete at the same instant.
    const double any = 1 - std::pow(0.9, 8);
    const double mfps = 100e3 / (10 + 3 * any);
    EXPECT_NEAR(report.stopped_for_acknowledge.seconds() / 3e-6, mfps * any,
                4 * std::sqrt(mfps * any * (1 - any)));
}

TEST(Cards, AreFullWhereTheHostsMemoryIs) {
    // Room for one round of MFPs, each of which stays for a millisecond.
    ShiftSystemConfig config = card_system(4, Time::zero());
    config.buffered_mfps = 8;
    config.source_acknowledge.mean = base::milliseconds(1);
    const Time duration = base::milliseconds(20);
    const ShiftReport report = play(config, duration)->report();
    EXPECT_LE(report.meps_built, 8 * 20U);
    EXPECT_EQ(report.stopped_for_acknowledge, Time::zero());
    // MEPs that are built, wait or are on a card were accepted while the trigger ran.
    const Time ran = duration - report.stopped_for_memory;
    EXPECT_NEAR(ran.seconds() / 10e-6, static_cast<double>(report.meps_built), 8 + 2);
}

TEST(Cards, WithABufferNeedARate) {
    ShiftSystemConfig config = card_system(2, Time::zero());
    config.mfp_interval = Time::zero();
    EXPECT_EQ(ShiftSystem::make(config).error().message,
              "card_buffer needs mfp_interval > 0: set event.rate");
}

}  // namespace
}  // namespace daqloom::systems

#include "protocol/schedule/lhc_trigger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace daqloom::protocol {
namespace {

using Crossings = std::vector<std::int64_t>;

Crossings accepted(LhcTrigger trigger, std::size_t count, std::uint64_t seed = 1) {
    base::RandomStream random(seed, "trigger");
    Crossings crossings(count);
    std::generate(crossings.begin(), crossings.end(), [&] { return trigger.next(random); });
    return crossings;
}

double mean_distance(const Crossings& crossings) {
    return static_cast<double>(crossings.back() - crossings.front()) /
           static_cast<double>(crossings.size() - 1);
}

/// 3564 crossings: 39 trains of 72 filled and 8 empty crossings, then the abort gap.
std::vector<std::uint8_t> lhc_filling_scheme() {
    std::vector<std::uint8_t> scheme(3564, 0);
    for (std::size_t train = 0; train < 39; ++train) {
        std::fill_n(scheme.begin() + static_cast<std::ptrdiff_t>(80 * train), 72, std::uint8_t{1});
    }
    return scheme;
}

TEST(LhcTrigger, WithoutDeadTimeDistancesOnAFullOrbitAreGeometric) {
    LhcTrigger trigger;
    const double mean = 5;
    EXPECT_EQ(trigger.set_mean_distance(mean), mean);
    constexpr std::size_t n = 200'000;
    const Crossings crossings = accepted(trigger, n + 1);
    std::vector<double> counts(10, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t distance = crossings[i + 1] - crossings[i];
        ASSERT_GE(distance, 1);
        if (distance <= 10) {
            ++counts[static_cast<std::size_t>(distance - 1)];
        }
    }
    for (std::size_t k = 0; k < counts.size(); ++k) {
        const double probability = 1 / mean * std::pow(1 - 1 / mean, static_cast<double>(k));
        EXPECT_NEAR(counts[k], n * probability, 5 * std::sqrt(n * probability)) << k + 1;
    }
}

TEST(LhcTrigger, AcceptsOnlyFilledCrossingsAndEachOfThemAlike) {
    const auto scheme = lhc_filling_scheme();
    LhcTrigger trigger(scheme, 0, {});
    trigger.set_mean_distance(3.7);
    constexpr std::size_t n = 1'000'000;
    std::vector<double> counts(scheme.size(), 0);
    for (const std::int64_t crossing : accepted(trigger, n)) {
        ++counts[static_cast<std::size_t>(crossing) % scheme.size()];
    }
    // 39 · 72 = 2808 filled crossings with Poisson counts of mean 356; limit: six deviations.
    const double mean = n / (39.0 * 72.0);
    for (std::size_t i = 0; i < scheme.size(); ++i) {
        if (scheme[i] == 0) {
            ASSERT_EQ(counts[i], 0) << i;
        } else {
            ASSERT_NEAR(counts[i], mean, 6 * std::sqrt(mean)) << i;
        }
    }
}

TEST(LhcTrigger, ACertainTriggerTakesEveryFilledCrossing) {
    const std::vector<std::uint8_t> scheme{0, 1, 1, 0, 1};
    EXPECT_EQ(accepted(LhcTrigger(scheme, 0, {}), 7), (Crossings{1, 2, 4, 6, 7, 9, 11}));
}

TEST(LhcTrigger, SimpleDeadTimeVetoesThatManyCrossings) {
    const std::vector<std::uint8_t> scheme{0, 1, 1, 0, 1};
    // After an accepted 1, 2 and 3 are vetoed; after 4, 5 and 6; after 7, 8 and 9; …
    EXPECT_EQ(accepted(LhcTrigger(scheme, 2, {}), 5), (Crossings{1, 4, 7, 11, 14}));
}

TEST(LhcTrigger, ALeakyBucketVetoesWhileItHasNoRoomForATrigger) {
    // Two triggers fill the bucket; one leaks in 5 crossings. Levels: 1 after crossing 0, 0.8 + 1
    // after crossing 1. The bucket has space for a trigger when 1.8 has fallen to 1, 4 crossings
    // later, and is then full after each trigger.
    EXPECT_EQ(accepted(LhcTrigger({}, 0, {{.triggers = 2, .window_bx = 10}}), 6),
              (Crossings{0, 1, 5, 10, 15, 20}));
    // A leaky bucket of 3 triggers per 10 crossings, in tenths of a trigger: 30 fill it, 3 leak per
    // crossing, and it accepts a trigger at a level of at most 20. Its level after a trigger: 10 at
    // crossing 0, 17 at 1, 24 at 2, 28 at 4 (from 18), 29 at 7 (from 19), 30 at 10 (from 20), 28 at
    // 14 (from 18).
    EXPECT_EQ(accepted(LhcTrigger({}, 0, {{.triggers = 3, .window_bx = 10}}), 7),
              (Crossings{0, 1, 2, 4, 7, 10, 14}));
}

TEST(LhcTrigger, TriggersNeverExceedTheDeadTimes) {
    // A bucket of X triggers that leaks X per W admits at most X + X · L / W in any L crossings.
    const std::vector<LeakyBucket> buckets{{.triggers = 4, .window_bx = 120},
                                           {.triggers = 9, .window_bx = 450}};
    constexpr std::int64_t simple = 3;
    const auto scheme = lhc_filling_scheme();
    for (const double distance : {1.0, 20.0, 60.0, 400.0}) {
        LhcTrigger trigger(scheme, simple, buckets);
        trigger.set_mean_distance(distance);
        const Crossings crossings = accepted(trigger, 50'000);
        for (std::size_t last = 1; last < crossings.size(); ++last) {
            ASSERT_GT(crossings[last] - crossings[last - 1], simple);
            for (std::size_t first = last < 100 ? 0 : last - 100; first < last; ++first) {
                const std::int64_t length = crossings[last] - crossings[first];
                const auto triggers = static_cast<std::int64_t>(last - first + 1);
                for (const auto& [x, w] : buckets) {
                    ASSERT_LE((triggers - x) * w, x * length);
                }
            }
        }
    }
}

TEST(LhcTrigger, ReachesTheSetDistanceDespiteSimpleDeadTime) {
    LhcTrigger trigger({}, 4, {});
    const double distance = 10;
    // On a full orbit the measurement has no noise: exactly 4 crossings are vetoed each time.
    EXPECT_NEAR(trigger.set_mean_distance(distance), distance, 1e-4);
    constexpr std::size_t n = 200'000;
    // The distance is 5 plus a geometric number of mean 5 and variance 5 · 6.
    EXPECT_NEAR(mean_distance(accepted(trigger, n)), distance, 5 * std::sqrt(30.0 / n));
}

TEST(LhcTrigger, ReachesTheSetDistanceDespiteComplexDeadTime) {
    // Buckets like ATLAS: 7/350 and 15/370. 100 kHz of 40 MHz is close to the second one's 108 kHz.
    const std::vector<LeakyBucket> buckets{{.triggers = 7, .window_bx = 7 * 350},
                                           {.triggers = 15, .window_bx = 15 * 370}};
    LhcTrigger trigger({}, 4, buckets);
    EXPECT_NEAR(trigger.set_mean_distance(400), 400, 0.01);
    EXPECT_NEAR(mean_distance(accepted(trigger, 400'000)), 400, 4);
}

TEST(LhcTrigger, ReportsTheDistanceThatDeadTimePermitsWhenLessIsSet) {
    EXPECT_NEAR(LhcTrigger({}, 9, {}).set_mean_distance(3), 10, 1e-3);
    EXPECT_NEAR(LhcTrigger({}, 0, {{.triggers = 5, .window_bx = 100}}).set_mean_distance(2), 20,
                0.01);
}

/// Probability A that a crossing is accepted. With simple dead time d, an accepted crossing
/// excludes the next d. So A = p · filled · (1 − the sum of A over the previous d crossings),
/// because these acceptances exclude each other. The recurrence settles after a few orbits.
std::vector<double> acceptance(const std::vector<std::uint8_t>& scheme, std::size_t dead,
                               double p) {
    std::vector<double> a(200 * scheme.size(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        const std::size_t first = i < dead ? 0 : i - dead;
        double vetoed = 0;
        for (std::size_t j = first; j < i; ++j) {
            vetoed += a[j];
        }
        a[i] = scheme[i % scheme.size()] != 0 ? p * (1 - vetoed) : 0;
    }
    return {a.end() - std::ssize(scheme), a.end()};
}

TEST(LhcTrigger, SharesTriggersAmongTheCrossingsOfATrainLikeTheRecurrence) {
    const std::vector<std::uint8_t> scheme{1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0};
    constexpr std::size_t dead = 3;
    constexpr double p = 0.4;
    const std::vector<double> a = acceptance(scheme, dead, p);
    const double per_orbit = std::accumulate(a.begin(), a.end(), 0.0);
    const double distance = 7 / per_orbit;  // in filled crossings, of which an orbit has 7

    LhcTrigger trigger(scheme, dead, {});
    EXPECT_NEAR(trigger.set_mean_distance(distance), distance, 1e-3);
    constexpr std::size_t n = 1'000'000;
    const Crossings crossings = accepted(trigger, n);
    // For a measured distance, the standard error of 32768 counts of 0 … 3 vetoes is below 0.3 %.
    EXPECT_NEAR(mean_distance(crossings), 11 / per_orbit, 0.01 * 11 / per_orbit);
    std::vector<double> counts(scheme.size(), 0);
    for (const std::int64_t crossing : crossings) {
        ++counts[static_cast<std::size_t>(crossing) % scheme.size()];
    }
    for (std::size_t i = 0; i < scheme.size(); ++i) {
        EXPECT_NEAR(counts[i] / n, a[i] / per_orbit, 0.004) << i;
    }
}

}  // namespace
}  // namespace daqloom::protocol

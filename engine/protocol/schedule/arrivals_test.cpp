#include "protocol/schedule/arrivals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/failure_test.hpp"
#include "base/goodness_of_fit_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Time;
using Kind = ArrivalsConfig::Kind;

base::RandomStream stream(std::uint64_t seed = 1) { return {seed, "arrivals"}; }

Arrivals arrivals(ArrivalsConfig config) {
    return base::value_of(Arrivals::make(std::move(config), stream()));
}

std::vector<double> intervals_us(Arrivals process, std::size_t count) {
    std::vector<double> intervals;
    Time last = Time::zero();
    for (std::size_t i = 0; i < count; ++i) {
        const Time time = process.next();
        EXPECT_GE(time, last);
        intervals.push_back((time - last).seconds() * 1e6);
        last = time;
    }
    return intervals;
}

/// The LHC's steps of 25 ns and its dead time of 100 ns change the distribution of intervals (mean
/// 83 µs) by less than 0.0015, which 100'000 intervals do not resolve (limit 2.7/√n = 0.0085).
TEST(PoissonArrivals, AndThoseOfTheLhcHaveExponentialIntervalsOfTheConfiguredRate) {
    for (const Kind kind : {Kind::poisson, Kind::lhc}) {
        base::expect_distribution(
            intervals_us(arrivals({.kind = kind, .rate_hz = 12e3, .simple_dead_time_bx = 4}),
                         100'000),
            base::exponential_of(1e6 / 12e3));
    }
}

TEST(PoissonArrivals, HaveUncorrelatedIntervals) {
    const auto x = intervals_us(arrivals({.kind = Kind::poisson, .rate_hz = 1e6}), 100'000);
    const base::Moments m = base::moments_of(x);
    double covariance = 0;
    for (std::size_t i = 1; i < x.size(); ++i) {
        covariance += (x[i] - m.mean) * (x[i - 1] - m.mean) / static_cast<double>(x.size());
    }
    // The correlation of n independent pairs has a standard error of 1/√n.
    EXPECT_LT(std::abs(covariance / m.variance), 5 / std::sqrt(100'000.0));
}

TEST(DeterministicArrivals, ComeAtMultiplesOfThePeriodWithoutDrift) {
    Arrivals process = arrivals({.kind = Kind::deterministic, .rate_hz = 12e3});
    EXPECT_EQ(process.next(), Time{83'333'333});   // 1/12000 s, rounded
    EXPECT_EQ(process.next(), Time{166'666'667});  // 2/12000 s
    for (int k = 3; k < 120'000; ++k) {
        process.next();
    }
    EXPECT_EQ(process.next(), base::seconds(10));
}

TEST(TraceArrivals, ComeAtTheirTimesAndThenNever) {
    Arrivals process =
        arrivals({.kind = Kind::trace, .trace_times = {Time{0}, Time{5}, Time{5}, Time{500}}});
    for (const Time at : {Time{0}, Time{5}, Time{5}, Time{500}, Time::never(), Time::never()}) {
        EXPECT_EQ(process.next(), at);
    }
}

TEST(LhcArrivals, LieOnTheGridOfFilledCrossings) {
    ArrivalsConfig config{.kind = Kind::lhc, .rate_hz = 1e6};
    config.bunch_spacing = base::nanoseconds(50);
    config.filling_scheme = {0, 1, 0, 1, 1};
    config.simple_dead_time_bx = 2;
    Arrivals process = arrivals(config);
    for (int i = 0; i < 10'000; ++i) {
        const Time time = process.next();
        ASSERT_EQ(time.ps % 50'000, 0);
        ASSERT_NE(config.filling_scheme[static_cast<std::size_t>(time.ps / 50'000 % 5)], 0);
    }
}

TEST(LhcArrivals, AcceptTheConfiguredRateDespiteGapsAndDeadTime) {
    // 40 MHz, three quarters of it filled. The dead times of 4 crossings and of 8 triggers per 3000
    // crossings permit at most 107 kHz, so the bucket is often full at 100 kHz.
    ArrivalsConfig config{.kind = Kind::lhc, .rate_hz = 100e3};
    config.filling_scheme = {1, 1, 1, 1, 1, 1, 0, 0};
    config.simple_dead_time_bx = 4;
    config.complex_dead_time = {{.triggers = 8, .window_bx = 3000}};
    Arrivals process = arrivals(config);
    constexpr int n = 400'000;
    Time last;
    for (int i = 0; i < n; ++i) {
        last = process.next();
    }
    EXPECT_NEAR(n / last.seconds(), 100e3, 1e3);
}

TEST(LhcArrivals, AtTheCrossingRateTakeEveryFilledCrossing) {
    Arrivals process = arrivals({.kind = Kind::lhc, .rate_hz = 20e6, .filling_scheme = {1, 0}});
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(process.next(), base::nanoseconds(50) * i);
    }
}

TEST(LhcArrivals, ComeAtTheRateThatDeadTimePermits) {
    // The dead time permits at most one in ten crossings of 40 MHz.
    Arrivals process = arrivals({.kind = Kind::lhc, .rate_hz = 8e6, .simple_dead_time_bx = 9});
    constexpr int n = 40'000;
    Time last;
    for (int i = 0; i < n; ++i) {
        last = process.next();
    }
    EXPECT_NEAR(n / last.seconds(), 4e6, 4e3);
}

TEST(Arrivals, EndWithTheClockInsteadOfOverflowing) {
    for (const Kind kind : {Kind::poisson, Kind::deterministic, Kind::lhc}) {
        Arrivals process = arrivals({.kind = kind, .rate_hz = 1e-3});
        Time last = Time::zero();
        for (int i = 0; i < 10'000; ++i) {
            const Time time = process.next();
            ASSERT_GE(time, last);
            last = time;
        }
        EXPECT_EQ(last, Time::never());
    }
}

TEST(Arrivals, RefuseAnImpossibleConfigurationInASentence) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinite = std::numeric_limits<double>::infinity();
    const std::vector<LeakyBucket> no_room{{.triggers = 0, .window_bx = 10}};
    const std::vector<std::pair<ArrivalsConfig, std::string>> cases{
        {{.kind = Kind::poisson, .rate_hz = 0}, "rate of 0 Hz"},
        {{.kind = Kind::poisson, .rate_hz = -1}, "rate of -1 Hz"},
        {{.kind = Kind::deterministic, .rate_hz = nan}, "rate of nan Hz"},
        {{.kind = Kind::deterministic, .rate_hz = infinite}, "rate of inf Hz"},
        {{.kind = Kind::lhc, .rate_hz = 41e6}, "only 40000000 filled crossings"},
        {{.kind = Kind::lhc, .rate_hz = 1, .bunch_spacing = Time{0}}, "bunch spacing of 0 ps"},
        {{.kind = Kind::lhc, .rate_hz = 1, .filling_scheme = {0, 0}}, "no filled crossing"},
        {{.kind = Kind::lhc, .rate_hz = 1, .complex_dead_time = no_room}, "of 0 triggers"},
        {{.kind = Kind::trace}, "trace without a single time"},
        {{.kind = Kind::trace, .trace_times = {Time{-1}}}, "leaves the range"},
        {{.kind = Kind::trace, .trace_times = {Time{2}, Time{1}}}, "time number 2"},
    };
    for (const auto& [config, words] : cases) {
        EXPECT_TRUE(
            base::message_of(Arrivals::make(config, stream())).starts_with("event arrivals: "));
        EXPECT_TRUE(base::fails_with(words, Arrivals::make(config, stream())));
    }
}

}  // namespace
}  // namespace daqloom::protocol

#include "ethernet/host_jitter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace daqloom::ethernet {
namespace {

using base::Time;

constexpr Time kWire = base::nanoseconds(100);
constexpr double kLongest = 4;

HostJitter jitter(std::string_view host = "a") { return {kLongest, base::SmallStream(1, host)}; }

TEST(HostJitter, HoldsUpAnIdleAdapterOnlyAndOnAverageForHalfOfTheLongest) {
    HostJitter of = jitter();
    const Time now = base::milliseconds(1);
    EXPECT_EQ(of.start(now, now + Time{1}, kWire), now);
    constexpr int n = 10'000;
    Time sum;
    for (int i = 0; i < n; ++i) {
        const Time start = of.start(now, now, kWire);
        EXPECT_GE(start, now);
        EXPECT_LT(start, now + kWire * 4);
        sum += start - now;
    }
    // Standard error of the mean of n uniform times: longest / √(12 n), 1.2 ns.
    EXPECT_NEAR(sum.seconds() / n, 2 * kWire.seconds(), 5 * 1.2e-9);
}

TEST(HostJitter, DelaysFramesInARowByTheirTimeAtMostAndKeepsHalfOfTheirDistance) {
    HostJitter of = jitter();
    Time at = base::milliseconds(1);
    Time last;
    for (int i = 0; i < 10'000; ++i) {
        of.start(at - kWire, at, kWire);
        const Time arrival = of.arrival(at, kWire);
        EXPECT_GE(arrival, at);
        EXPECT_LE(arrival, at + kWire);
        EXPECT_GE(arrival, last + kWire / 2 - Time{1});
        last = arrival;
        at += kWire;
    }
}

TEST(HostJitter, KeepsTheOrderOfFramesOfAllSizes) {
    HostJitter of = jitter();
    base::SmallStream sizes(2, "sizes");
    Time at;
    Time last;
    for (int i = 0; i < 10'000; ++i) {
        const Time wire{1 + static_cast<std::int64_t>(sizes() % 100'000)};
        of.start(at, at + wire, wire);
        at += wire;
        const Time arrival = of.arrival(at, wire);
        EXPECT_GE(arrival, last);
        EXPECT_GE(arrival, at);
        last = arrival;
    }
}

TEST(HostJitter, MakesEveryPhaseOfEqualFramesAsLikely) {
    HostJitter of = jitter();
    constexpr std::size_t parts = 10;
    constexpr int n = 1'000'000;
    std::array<int, parts> frames{};
    Time at;
    for (int i = 0; i < n; ++i) {
        at += kWire;
        of.start(at, at + Time{1}, kWire);
        const Time phase{of.arrival(at, kWire).ps % kWire.ps};
        ++frames[static_cast<std::size_t>(phase.ps) * parts / static_cast<std::size_t>(kWire.ps)];
    }
    // The walk, with steps of variance 1/12 in a range of 1, forgets its start after about 24 / π²
    // frames. With one sample in so many frames, the standard error of a share p is 0.0005.
    for (const int count : frames) {
        EXPECT_NEAR(static_cast<double>(count) / n, 1.0 / parts, 5 * 0.0005);
    }
}

TEST(HostJitter, OfAnotherHostIsAnotherSequence) {
    HostJitter a = jitter("a");
    HostJitter b = jitter("b");
    EXPECT_NE(a.start(Time::zero(), Time::zero(), kWire),
              b.start(Time::zero(), Time::zero(), kWire));
}

}  // namespace
}  // namespace daqloom::ethernet

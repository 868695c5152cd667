#include "sim/time_series.hpp"

#include <gtest/gtest.h>

#include <random>

namespace daqloom::sim {
namespace {

using base::Time;

void expect_bin(const TimeSeries& series, std::size_t bin, std::int64_t max, double mean) {
    ASSERT_LT(bin, series.bins().size());
    EXPECT_EQ(series.bins()[bin].max, max) << "bin " << bin;
    EXPECT_DOUBLE_EQ(series.bins()[bin].mean, mean) << "bin " << bin;
}

/// Two bins of 10 ps: 4 from 2 to 5, 6 from 5 to 12, 1 from 12 to 20.
///   bin 0: (2·0 + 3·4 + 5·6) / 10 = 4.2    bin 1: (2·6 + 8·1) / 10 = 2
TEST(TimeSeries, KeepsMaximumAndMeanOfEachBin) {
    TimeSeries series(Time{0}, Time{20}, 2);
    series.set(Time{2}, 4);
    series.set(Time{5}, 6);
    EXPECT_EQ(series.peak().value, 6);
    series.set(Time{12}, 1);
    series.finish(Time{20});
    ASSERT_EQ(series.bins().size(), 2U);
    expect_bin(series, 0, 6, 4.2);
    expect_bin(series, 1, 6, 2);
    EXPECT_EQ(series.peak().value, 6);
    EXPECT_EQ(series.peak().at, Time{5});
}

TEST(TimeSeries, CarriesAValueOverBinsWithoutChanges) {
    TimeSeries series(Time{100}, Time{140}, 4);
    series.set(Time{105}, 8);
    series.set(Time{135}, 2);
    series.finish(Time{140});
    expect_bin(series, 0, 8, 4);
    expect_bin(series, 1, 8, 8);
    expect_bin(series, 2, 8, 8);
    expect_bin(series, 3, 8, 5);
}

TEST(TimeSeries, CountsAValueThatLastsNoTimeForTheMaximumOnly) {
    TimeSeries series(Time{0}, Time{10}, 1);
    series.set(Time{5}, 100);
    series.set(Time{5}, 2);
    series.finish(Time{10});
    expect_bin(series, 0, 100, 1);
    EXPECT_EQ(series.peak().at, Time{5});
}

TEST(TimeSeries, AChangeOnABoundaryBelongsToTheLaterBin) {
    TimeSeries series(Time{0}, Time{20}, 2);
    series.set(Time{10}, 3);
    series.finish(Time{20});
    expect_bin(series, 0, 0, 0);
    expect_bin(series, 1, 3, 3);
}

TEST(TimeSeries, AFallOnABoundaryKeepsTheOldValueOutOfTheLaterBin) {
    TimeSeries series(Time{0}, Time{20}, 2);
    series.set(Time{0}, 9);
    series.set(Time{10}, 3);
    series.finish(Time{20});
    expect_bin(series, 0, 9, 9);
    expect_bin(series, 1, 3, 3);
}

TEST(TimeSeries, TakesFromTheWarmUpOnlyTheLastValue) {
    TimeSeries series(Time{10}, Time{20}, 1);
    series.set(Time{1}, 1000);
    series.set(Time{4}, 7);
    series.set(Time{15}, 1);
    series.finish(Time{20});
    expect_bin(series, 0, 7, 4);
    EXPECT_EQ(series.peak().value, 7);
    EXPECT_EQ(series.peak().at, Time{10});
}

TEST(TimeSeries, IgnoresWhatComesAtOrAfterTheEnd) {
    TimeSeries series(Time{0}, Time{20}, 2);
    series.set(Time{10}, 5);
    series.set(Time{20}, 50);
    EXPECT_FALSE(series.would_raise(Time{21}, 5000));
    EXPECT_EQ(series.bin_end(), Time::never());
    series.set(Time{25}, 5000);
    series.finish(Time{30});
    ASSERT_EQ(series.bins().size(), 2U);
    expect_bin(series, 1, 5, 5);
    EXPECT_EQ(series.peak().value, 5);
}

TEST(TimeSeries, ARunThatStopsEarlyKeepsTheBinItStoppedIn) {
    TimeSeries series(Time{0}, Time{40}, 4);
    series.set(Time{10}, 6);
    series.finish(Time{12});
    ASSERT_EQ(series.bins().size(), 2U);
    expect_bin(series, 1, 6, 6);
}

TEST(TimeSeries, CutsTheLastBinAtTheEnd) {
    TimeSeries series(Time{0}, Time{10}, 4);  // bins of 3, 3, 3 and 1 ps
    series.set(Time{8}, 6);
    series.finish(Time{10});
    ASSERT_EQ(series.bins().size(), 4U);
    expect_bin(series, 2, 6, 2);
    expect_bin(series, 3, 6, 6);
}

TEST(TimeSeries, MoreBinsThanPicosecondsLeavesTheSurplusOut) {
    TimeSeries series(Time{0}, Time{3}, 10);
    series.set(Time{1}, 6);
    series.finish(Time{3});
    ASSERT_EQ(series.bins().size(), 3U);
    expect_bin(series, 0, 0, 0);
    expect_bin(series, 2, 6, 6);
}

/// A queue with rushes and lulls that drains one unit every other picosecond. One series sees every
/// change, the other one asks for the true length only where a bound that ignores what has drained
/// could raise a maximum.
TEST(TimeSeries, SetsThatCannotRaiseAMaximumMayBeLeftOut) {
    constexpr std::int64_t kEnd = 100'000;
    TimeSeries exact(Time{1000}, Time{kEnd}, 77);
    TimeSeries lazy(Time{1000}, Time{kEnd}, 77);
    std::mt19937 random(1);
    std::int64_t length = 0;
    std::int64_t drained_to = 0;
    std::int64_t bound = 0;
    int arrivals = 0;
    int looks = 0;
    auto drain = [&](std::int64_t until, TimeSeries* series) {
        auto value = length;
        for (std::int64_t t = drained_to + drained_to % 2; t <= until; t += 2) {
            if (t > drained_to && value > 0) {
                --value;
                if (series != nullptr) {
                    series->set(Time{t}, value);
                }
            }
        }
        return value;
    };
    for (std::int64_t t = 1; t < kEnd; ++t) {
        const bool rush = t / 3000 % 3 == 0;
        if (random() % 100 >= (rush ? 70U : 10U)) {
            continue;
        }
        const auto before = drain(t, &exact);
        ++arrivals;
        bound += 1;
        if (lazy.would_raise(Time{t}, bound)) {
            while (lazy.bin_end() <= Time{t}) {
                lazy.set(lazy.bin_end(), drain(lazy.bin_end().ps, nullptr));
            }
            bound = before + 1;
            lazy.set(Time{t}, bound);
            ++looks;
        }
        length = before + 1;
        drained_to = t;
        exact.set(Time{t}, length);
    }
    drain(kEnd, &exact);
    exact.finish(Time{kEnd});
    while (lazy.bin_end() <= Time{kEnd}) {
        lazy.set(lazy.bin_end(), drain(lazy.bin_end().ps, nullptr));
    }
    lazy.finish(Time{kEnd});
    ASSERT_EQ(exact.bins().size(), 77U);
    ASSERT_EQ(lazy.bins().size(), 77U);
    for (std::size_t i = 0; i < 77; ++i) {
        EXPECT_EQ(exact.bins()[i].max, lazy.bins()[i].max) << "bin " << i;
    }
    EXPECT_EQ(exact.peak().value, lazy.peak().value);
    EXPECT_EQ(exact.peak().at, lazy.peak().at);
    EXPECT_LT(looks, arrivals);
}

}  // namespace
}  // namespace daqloom::sim

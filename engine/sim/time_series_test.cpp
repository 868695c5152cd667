#include "sim/time_series.hpp"

#include <gtest/gtest.h>

#include <random>

namespace daqloom::sim {
namespace {

using base::Time;

using Sets = std::vector<std::pair<std::int64_t, std::int64_t>>;  ///< times and values
using Bins = std::vector<std::pair<std::int64_t, double>>;        ///< maxima and means

/// Expects the bins of a series from begin to end that stops at `stop`, and its peak (time, value).
void expect_bins(const char* name, Time begin, Time end, std::size_t bins, const Sets& sets,
                 Time stop, const Bins& expected, std::pair<std::int64_t, std::int64_t> peak) {
    SCOPED_TRACE(name);
    TimeSeries series(begin, end, bins);
    for (const auto& [at, value] : sets) {
        series.set(Time{at}, value);
    }
    series.finish(stop);
    ASSERT_EQ(series.bins().size(), expected.size());
    for (std::size_t bin = 0; bin < expected.size(); ++bin) {
        EXPECT_EQ(series.bins()[bin].max, expected[bin].first) << "bin " << bin;
        EXPECT_DOUBLE_EQ(series.bins()[bin].mean, expected[bin].second) << "bin " << bin;
    }
    EXPECT_EQ(series.peak().at, Time{peak.first});
    EXPECT_EQ(series.peak().value, peak.second);
}

/// The case "changes" has two bins of 10 ps: 4 from 2 to 5, 6 from 5 to 12, 1 from 12 to 20.
///   bin 0: (2·0 + 3·4 + 5·6) / 10 = 4.2    bin 1: (2·6 + 8·1) / 10 = 2
TEST(TimeSeries, KeepsMaximumAndMeanOfEachBin) {
    expect_bins("changes", Time{0}, Time{20}, 2, {{2, 4}, {5, 6}, {12, 1}}, Time{20},
                {{6, 4.2}, {6, 2}}, {5, 6});
    expect_bins("bins without a change", Time{100}, Time{140}, 4, {{105, 8}, {135, 2}}, Time{140},
                {{8, 4}, {8, 8}, {8, 8}, {8, 5}}, {105, 8});
    expect_bins("a value that lasts no time counts for the maximum only", Time{0}, Time{10}, 1,
                {{5, 100}, {5, 2}}, Time{10}, {{100, 1}}, {5, 100});
    expect_bins("a change on a boundary belongs to the later bin", Time{0}, Time{20}, 2, {{10, 3}},
                Time{20}, {{0, 0}, {3, 3}}, {10, 3});
    expect_bins("a fall on a boundary", Time{0}, Time{20}, 2, {{0, 9}, {10, 3}}, Time{20},
                {{9, 9}, {3, 3}}, {0, 9});
    expect_bins("of the warm-up, the last value", Time{10}, Time{20}, 1,
                {{1, 1000}, {4, 7}, {15, 1}}, Time{20}, {{7, 4}}, {10, 7});
    expect_bins("a run that stops in a bin", Time{0}, Time{40}, 4, {{10, 6}}, Time{12},
                {{0, 0}, {6, 6}}, {10, 6});
    expect_bins("bins of 3, 3, 3 and 1 ps", Time{0}, Time{10}, 4, {{8, 6}}, Time{10},
                {{0, 0}, {0, 0}, {6, 2}, {6, 6}}, {8, 6});
    expect_bins("more bins than picoseconds", Time{0}, Time{3}, 10, {{1, 6}}, Time{3},
                {{0, 0}, {6, 6}, {6, 6}}, {1, 6});
}

TEST(TimeSeries, IgnoresValuesAtOrAfterTheEnd) {
    TimeSeries series(Time{0}, Time{20}, 2);
    series.set(Time{10}, 5);
    series.set(Time{20}, 50);
    EXPECT_FALSE(series.would_raise(Time{21}, 5000));
    EXPECT_EQ(series.bin_end(), Time::never());
    series.set(Time{25}, 5000);
    series.finish(Time{30});
    ASSERT_EQ(series.bins().size(), 2U);
    EXPECT_EQ(series.bins()[1].max, 5);
    EXPECT_DOUBLE_EQ(series.bins()[1].mean, 5);
    EXPECT_EQ(series.peak().value, 5);
}

/// A queue with bursts and pauses that drains one unit every other picosecond. One series gets
/// every change; the other gets the exact length only if an upper bound, which ignores departures
/// since then, could raise a maximum.
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

// For tests: does a sample come from a given distribution?
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace daqloom::base {

/// The largest distance between the sample's distribution function and `cdf`, times √n: the
/// Kolmogorov–Smirnov statistic. If the sample has this distribution, the statistic exceeds 2.7
/// with a probability of 2 exp(−2 · 2.7²) = 9e-7 (Massart's bound, any n).
template <class Cdf>
double kolmogorov_smirnov(std::vector<double> sample, Cdf cdf) {
    std::sort(sample.begin(), sample.end());
    const auto n = static_cast<double>(sample.size());
    double distance = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double expected = cdf(sample[i]);
        const auto below = static_cast<double>(i);
        distance = std::max({distance, expected - below / n, (below + 1) / n - expected});
    }
    return distance * std::sqrt(n);
}
template <class Cdf>
void expect_distribution(const std::vector<double>& sample, Cdf cdf) {
    EXPECT_LT(kolmogorov_smirnov(sample, cdf), 2.7);
}

/// Distribution functions.
inline auto exponential_of(double mean) {
    return [mean](double x) { return 1 - std::exp(-x / mean); };
}
inline auto normal_of(double mean, double deviation) {
    return [=](double x) { return 0.5 * std::erfc(-(x - mean) / deviation / std::numbers::sqrt2); };
}

struct Moments {
    double mean = 0;
    double variance = 0;
    /// Standard error of the mean.
    double error = 0;
};

inline Moments moments_of(const std::vector<double>& sample) {
    const auto n = static_cast<double>(sample.size());
    Moments m;
    for (const double x : sample) {
        m.mean += x / n;
    }
    for (const double x : sample) {
        m.variance += (x - m.mean) * (x - m.mean) / (n - 1);
    }
    m.error = std::sqrt(m.variance / n);
    return m;
}

}  // namespace daqloom::base

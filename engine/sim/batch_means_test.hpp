// The confidence interval of a simulated time average (batch means).
#pragma once

#include <cassert>
#include <cmath>
#include <span>

#include "sim/time_series.hpp"

namespace daqloom::sim {

struct Interval {
    double mean = 0;
    double half_width = 0;

    [[nodiscard]] bool contains(double x) const { return std::abs(x - mean) <= half_width; }
};

/// Quantile 0.995 of Student's t distribution, for 99 % two-sided intervals: the expansion in
/// 1/degrees of Abramowitz and Stegun, 26.7.5, within 0.1 % from 6 degrees of freedom on.
inline double student_t_995(double degrees) {
    constexpr double z = 2.5758293035489004;  // the same quantile of the normal distribution
    constexpr double z2 = z * z;
    const double g1 = z * (z2 + 1) / 4;
    const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
    const double n = 1 / degrees;
    return z + n * (g1 + n * (g2 + n * (g3 + n * g4)));
}

/// The time average of a step function and its 99 % confidence interval by batch means (Law,
/// Simulation Modeling and Analysis, 9.5.3): the bins are the batches; choose 10 to 40 of them,
/// long against the correlation time of the process. Requires at least 7.
inline Interval batch_means_99(std::span<const TimeSeries::Bin> batches) {
    assert(batches.size() >= 7);
    const auto n = static_cast<double>(batches.size());
    double mean = 0;
    for (const auto& batch : batches) {
        mean += batch.mean / n;
    }
    double squares = 0;
    for (const auto& batch : batches) {
        squares += (batch.mean - mean) * (batch.mean - mean);
    }
    return {mean, student_t_995(n - 1) * std::sqrt(squares / (n - 1) / n)};
}

}  // namespace daqloom::sim

#include "sim/batch_means_test.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace daqloom::sim {
namespace {

std::vector<TimeSeries::Bin> batches(const std::vector<double>& means) {
    std::vector<TimeSeries::Bin> bins;
    for (const double mean : means) {
        bins.push_back({0, mean});
    }
    return bins;
}

/// Values from printed tables of Student's t, 99 % two-sided.
TEST(StudentT, AgreesWithTables) {
    EXPECT_NEAR(student_t_995(6), 3.7074, 0.002);
    EXPECT_NEAR(student_t_995(9), 3.2498, 0.0002);
    EXPECT_NEAR(student_t_995(29), 2.7564, 0.0001);
    EXPECT_NEAR(student_t_995(120), 2.6174, 0.0001);
}

/// Samples 1 … 10: mean 5.5, variance 82.5 / 9, standard error √(82.5 / 90), t = 3.2498.
TEST(BatchMeans, GivesTheTextbookInterval) {
    const auto interval = batch_means_99(batches({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
    EXPECT_DOUBLE_EQ(interval.mean, 5.5);
    EXPECT_NEAR(interval.half_width, 3.2498 * std::sqrt(82.5 / 90), 2e-4);
    EXPECT_TRUE(interval.contains(5.5 + 3.1));
    EXPECT_FALSE(interval.contains(5.5 - 3.2));
}

/// 1 % of 2000 intervals, each over 10 normal samples, miss the mean: 20 ± 3·√20 of them.
TEST(BatchMeans, MissesTheTruthOnceInAHundred) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal(4, 2);
    int misses = 0;
    for (int i = 0; i < 2000; ++i) {
        std::vector<double> means(10);
        for (auto& mean : means) {
            mean = normal(random);
        }
        misses += static_cast<int>(!batch_means_99(batches(means)).contains(4));
    }
    EXPECT_GE(misses, 7);
    EXPECT_LE(misses, 33);
}

}  // namespace
}  // namespace daqloom::sim

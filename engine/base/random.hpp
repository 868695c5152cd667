// Named random streams: every stochastic process in a run has a separate stream.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string_view>

namespace daqloom::base {

/// A random sequence that depends only on the run's seed and the stream's name: a process that is
/// added to a run, or draws more numbers, does not affect other processes.
///
/// The generator is std::mt19937_64, initialised by std::seed_seq over the two halves of the seed
/// followed by the bytes of the name. Both are fixed to the bit by the C++ standard ([rand.predef],
/// [rand.util.seedseq]); the distributions are libstdc++'s, so that a sequence is the same for
/// every compiler that uses this library.
///
/// The class is a uniform random bit generator, for std::shuffle and the distributions of <random>.
class RandomStream {
  public:
    using result_type = std::mt19937_64::result_type;

    RandomStream(std::uint64_t seed, std::string_view name);

    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
    result_type operator()() { return generator_(); }

    /// In [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }

    /// One of 0 … n − 1, all with equal probability; `n` must be at least 1.
    std::uint64_t uniform_int(std::uint64_t n) {
        return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(generator_);
    }

    double exponential(double mean) { return -mean * std::log1p(-uniform()); }

    double normal(double mean, double sigma) { return mean + sigma * standard_normal_(generator_); }

    /// Gamma distribution: mean shape · scale, variance shape · scale²; both must be above 0.
    double gamma(double shape, double scale) {
        return std::gamma_distribution<double>(shape, scale)(generator_);
    }

    /// `mean` above 0, at most 1e15.
    std::int64_t poisson(double mean) {
        return std::poisson_distribution<std::int64_t>(mean)(generator_);
    }

    /// Number of failures before the first success, in trials that each succeed with `probability`
    /// in (0, 1]; limited to 1e15.
    std::int64_t geometric(double probability) {
        const double failures = std::floor(std::log1p(-uniform()) / std::log1p(-probability));
        return failures < 1e15 ? static_cast<std::int64_t>(failures)
                               : std::int64_t{1'000'000'000'000'000};
    }

  private:
    std::mt19937_64 generator_;
    std::normal_distribution<double> standard_normal_;
};

/// Finaliser of SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014): every bit of the value changes about half of the result.
constexpr std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
    value = (value ^ value >> 27) * 0x94d049bb133111eb;
    return value ^ value >> 31;
}

/// A random sequence with only eight bytes of state, for a process of every host: SplitMix64, whose
/// seed is the first number of the RandomStream with this name.
class SmallStream {
  public:
    SmallStream(std::uint64_t seed, std::string_view name) : state_(RandomStream(seed, name)()) {}

    std::uint64_t operator()() { return mixed(state_ += 0x9e3779b97f4a7c15U); }
    /// In [0, 1), a multiple of 2^-53.
    double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }

  private:
    std::uint64_t state_;
};

}  // namespace daqloom::base

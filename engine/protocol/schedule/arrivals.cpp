#include "protocol/schedule/arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Time;

// ---- limits that keep sums of times from overflowing: an interval, a dead time and an orbit are
// each far shorter than the 53 days between `horizon` and the end of the clock
constexpr double lowest_rate_hz = 1e-3;
constexpr double highest_rate_hz = 1e12;
constexpr Time horizon{std::int64_t{1} << 62};
constexpr Time shortest_bunch_spacing = base::nanoseconds(1);
constexpr Time longest_bunch_spacing = base::microseconds(1);
constexpr std::size_t longest_orbit_bx = 1'000'000;
constexpr std::size_t most_buckets = 16;
constexpr std::uint32_t most_bucket_triggers = 1'000;
constexpr std::uint32_t longest_bucket_window_bx = 1'000'000'000;

double filled_crossings_hz(const ArrivalsConfig& config) {
    const auto& scheme = config.filling_scheme;
    const double crossings_hz = 1e12 / static_cast<double>(config.bunch_spacing.ps);
    if (scheme.empty()) {
        return crossings_hz;
    }
    const auto filled = std::ssize(scheme) - std::count(scheme.begin(), scheme.end(), 0);
    return crossings_hz * static_cast<double>(filled) / static_cast<double>(scheme.size());
}

base::expected<void> check_lhc(const ArrivalsConfig& config) {
    DAQLOOM_REFUSE_IF(config.bunch_spacing < shortest_bunch_spacing ||
                          config.bunch_spacing > longest_bunch_spacing,
                      "bunch spacing of {} ps; give 1 ns to 1 us", config.bunch_spacing.ps);
    const auto& scheme = config.filling_scheme;
    DAQLOOM_REFUSE_IF(scheme.size() > longest_orbit_bx,
                      "filling scheme of {} crossings; give at most {}", scheme.size(),
                      longest_orbit_bx);
    const double filled_hz = filled_crossings_hz(config);
    DAQLOOM_REFUSE_IF(filled_hz == 0, "filling scheme with no filled crossing; fill at least one");
    DAQLOOM_REFUSE_IF(config.rate_hz > filled_hz,
                      "rate of {} Hz, but only {} filled crossings a second; lower the rate",
                      config.rate_hz, filled_hz);
    DAQLOOM_REFUSE_IF(config.complex_dead_time.size() > most_buckets,
                      "complex dead time of {} buckets; give at most {}",
                      config.complex_dead_time.size(), most_buckets);
    for (const LeakyBucket& bucket : config.complex_dead_time) {
        DAQLOOM_REFUSE_IF(
            bucket.triggers < 1 || bucket.triggers > most_bucket_triggers || bucket.window_bx < 1 ||
                bucket.window_bx > longest_bucket_window_bx,
            "complex dead time of {} triggers in {} crossings; give 1 to {} triggers in 1 to "
            "{} crossings",
            bucket.triggers, bucket.window_bx, most_bucket_triggers, longest_bucket_window_bx);
    }
    return {};
}

base::expected<void> check_trace(const std::vector<Time>& times) {
    DAQLOOM_REFUSE_IF(times.empty(), "trace without a single time; give at least one");
    DAQLOOM_REFUSE_IF(times.front() < Time::zero() || times.back() > horizon,
                      "trace that leaves the range of 0 to 53 days; shift its times");
    const auto disorder = std::is_sorted_until(times.begin(), times.end());
    DAQLOOM_REFUSE_IF(disorder != times.end(),
                      "trace whose time number {} is before the one it follows; sort it",
                      disorder - times.begin() + 1);
    return {};
}

base::expected<void> check(const ArrivalsConfig& config) {
    if (config.kind == ArrivalsConfig::Kind::trace) {
        return check_trace(config.trace_times);
    }
    DAQLOOM_REFUSE_IF(!(config.rate_hz >= lowest_rate_hz && config.rate_hz <= highest_rate_hz),
                      "rate of {} Hz; give {} to {} Hz", config.rate_hz, lowest_rate_hz,
                      highest_rate_hz);
    return config.kind == ArrivalsConfig::Kind::lhc ? check_lhc(config) : base::expected<void>();
}

}  // namespace

base::expected<Arrivals> Arrivals::make(ArrivalsConfig config, base::RandomStream random) {
    DAQLOOM_CHECK(base::about("event arrivals: ", check(config)));
    return Arrivals(std::move(config), std::move(random));
}

Arrivals::Arrivals(ArrivalsConfig config, base::RandomStream random)
    : config_(std::move(config)), random_(std::move(random)) {
    if (config_.kind == ArrivalsConfig::Kind::lhc) {
        trigger_ = LhcTrigger(config_.filling_scheme, config_.simple_dead_time_bx,
                              config_.complex_dead_time);
        trigger_.set_mean_distance(filled_crossings_hz(config_) / config_.rate_hz);
    }
}

Time Arrivals::next() {
    if (last_ >= horizon) {
        return Time::never();
    }
    ++count_;
    switch (config_.kind) {
        case ArrivalsConfig::Kind::poisson:
            last_ += Time::from_seconds(random_.exponential(1.0 / config_.rate_hz));
            break;
        case ArrivalsConfig::Kind::deterministic:
            last_ = Time::from_seconds(static_cast<double>(count_) / config_.rate_hz);
            break;
        case ArrivalsConfig::Kind::lhc:
            last_ = config_.bunch_spacing * trigger_.next(random_);
            break;
        case ArrivalsConfig::Kind::trace:
            if (count_ > std::ssize(config_.trace_times)) {
                last_ = Time::never();
                break;
            }
            last_ = config_.trace_times[static_cast<std::size_t>(count_ - 1)];
            break;
    }
    return last_;
}

}  // namespace daqloom::protocol

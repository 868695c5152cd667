#include "protocol/arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Time;

// Bounds within which no sum below can overflow: an interval, a dead time and an orbit are each
// far shorter than the 53 days between the horizon and the end of the clock.
constexpr double lowest_rate_hz = 1e-3;
constexpr double highest_rate_hz = 1e12;
constexpr Time horizon{std::int64_t{1} << 62};
constexpr Time longest_bunch_spacing = base::microseconds(1);
constexpr std::size_t longest_orbit_bx = 1'000'000;
constexpr std::uint32_t most_bucket_triggers = 1'000;
constexpr std::uint32_t longest_bucket_window_bx = 1'000'000'000;

std::optional<std::string> problem_of_lhc(const ArrivalsConfig& config) {
    if (config.bunch_spacing <= Time::zero() || config.bunch_spacing > longest_bunch_spacing) {
        return fmt::format("bunch spacing of {} ps; give 1 ps to 1 us", config.bunch_spacing.ps);
    }
    const auto& scheme = config.filling_scheme;
    if (scheme.size() > longest_orbit_bx) {
        return fmt::format("filling scheme of {} crossings; give at most {}", scheme.size(),
                           longest_orbit_bx);
    }
    const auto empty = static_cast<std::size_t>(std::count(scheme.begin(), scheme.end(), 0));
    if (!scheme.empty() && empty == scheme.size()) {
        return std::string("filling scheme with no filled crossing; fill at least one");
    }
    for (const LeakyBucket& bucket : config.complex_dead_time) {
        if (bucket.triggers < 1 || bucket.triggers > most_bucket_triggers || bucket.window_bx < 1 ||
            bucket.window_bx > longest_bucket_window_bx) {
            return fmt::format(
                "complex dead time of {} triggers in {} crossings; give 1 to {} triggers in 1 to "
                "{} crossings",
                bucket.triggers, bucket.window_bx, most_bucket_triggers, longest_bucket_window_bx);
        }
    }
    const double filled_share = scheme.empty() ? 1.0
                                               : static_cast<double>(scheme.size() - empty) /
                                                     static_cast<double>(scheme.size());
    const double filled_rate_hz = filled_share / config.bunch_spacing.seconds();
    if (config.rate_hz > filled_rate_hz) {
        return fmt::format("rate of {} Hz, but only {} filled crossings a second; lower the rate",
                           config.rate_hz, filled_rate_hz);
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_trace(const std::vector<Time>& times) {
    if (times.empty()) {
        return std::string("trace without a single time; give at least one");
    }
    if (times.front() < Time::zero() || times.back() > horizon) {
        return std::string("trace that leaves the range of 0 to 53 days; shift its times");
    }
    const auto disorder = std::is_sorted_until(times.begin(), times.end());
    if (disorder != times.end()) {
        return fmt::format("trace whose time number {} is before the one it follows; sort it",
                           disorder - times.begin() + 1);
    }
    return std::nullopt;
}

std::optional<std::string> problem_of(const ArrivalsConfig& config) {
    if (config.kind == ArrivalsConfig::Kind::trace) {
        return problem_of_trace(config.trace_times);
    }
    if (!(config.rate_hz >= lowest_rate_hz && config.rate_hz <= highest_rate_hz)) {
        return fmt::format("rate of {} Hz; give {} to {} Hz", config.rate_hz, lowest_rate_hz,
                           highest_rate_hz);
    }
    return config.kind == ArrivalsConfig::Kind::lhc ? problem_of_lhc(config) : std::nullopt;
}

double mean_rate_of_trace(const std::vector<Time>& times) {
    const double span_s = times.back().seconds();
    return span_s > 0 ? static_cast<double>(times.size()) / span_s : 0;
}

}  // namespace

base::expected<Arrivals> Arrivals::make(ArrivalsConfig config, base::RandomStream random) {
    if (const auto problem = problem_of(config)) {
        return base::failure("event arrivals: " + *problem);
    }
    return Arrivals(std::move(config), std::move(random));
}

Arrivals::Arrivals(ArrivalsConfig config, base::RandomStream random)
    : config_(std::move(config)), random_(std::move(random)), mean_rate_hz_(config_.rate_hz) {
    if (config_.kind == ArrivalsConfig::Kind::lhc) {
        thinning_ = Thinning(config_);
        calibrate_thinning();
    } else if (config_.kind == ArrivalsConfig::Kind::trace) {
        mean_rate_hz_ = mean_rate_of_trace(config_.trace_times);
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
            last_ = config_.bunch_spacing * thinning_.next(random_);
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

// The mean distance of accepted crossings, counted in filled ones, is the mean number vetoed plus
// that of a geometric variable, 1/p. The former has a closed form only for simple dead time on a
// full orbit; a pilot run of the same process measures it, always with the same random numbers, so
// that the distance rises with 1/p and the calibration is a function of the configuration alone.
void Arrivals::calibrate_thinning() {
    const double filled_rate_hz = thinning_.filled_fraction() / config_.bunch_spacing.seconds();
    const double wanted = filled_rate_hz / config_.rate_hz;
    double inverse_probability = wanted;
    double distance = wanted;

    if (config_.simple_dead_time_bx > 0 || !config_.complex_dead_time.empty()) {
        const auto distance_at = [this](double inverse_p) {
            constexpr int warm_up = 8'192;
            constexpr int measured = 65'536;
            Thinning pilot(config_);
            pilot.set_probability(1.0 / inverse_p);
            base::RandomStream random(0, "dead-time calibration");
            for (int i = 0; i < warm_up; ++i) {
                pilot.next(random);
            }
            const std::int64_t vetoed_before = pilot.vetoed();
            for (int i = 0; i < measured; ++i) {
                pilot.next(random);
            }
            return inverse_p + static_cast<double>(pilot.vetoed() - vetoed_before) / measured;
        };
        constexpr double tolerance = 1e-5;
        double low = 1;
        double low_distance = distance_at(low);
        double high = wanted;
        double high_distance = distance_at(high);
        inverse_probability = low;
        distance = low_distance;
        // Interpolation hits a vetoed number that does not depend on p at once; halving, in turn
        // with it, keeps the interval shrinking where it does.
        for (bool interpolate = true;
             distance < wanted * (1 - tolerance) && high - low > tolerance * low;
             interpolate = !interpolate) {
            inverse_probability = interpolate ? low + (high - low) * (wanted - low_distance) /
                                                          (high_distance - low_distance)
                                              : (low + high) / 2;
            distance = distance_at(inverse_probability);
            if (distance > wanted * (1 + tolerance)) {
                high = inverse_probability;
                high_distance = distance;
                distance = low_distance;
                inverse_probability = low;
            } else {
                low = inverse_probability;
                low_distance = distance;
            }
        }
    }
    thinning_.set_probability(1.0 / inverse_probability);
    mean_rate_hz_ = filled_rate_hz / distance;
}

Arrivals::Thinning::Thinning(const ArrivalsConfig& config)
    : simple_dead_time_(config.simple_dead_time_bx) {
    if (!config.filling_scheme.empty()) {
        orbit_ = std::ssize(config.filling_scheme);
        filled_.clear();
        for (std::size_t i = 0; i < config.filling_scheme.size(); ++i) {
            if (config.filling_scheme[i] != 0) {
                filled_.push_back(static_cast<std::int64_t>(i));
            }
        }
    }
    for (const LeakyBucket& bucket : config.complex_dead_time) {
        buckets_.push_back({.leak_per_bx = bucket.triggers,
                            .trigger = bucket.window_bx,
                            .capacity = std::int64_t{bucket.triggers} * bucket.window_bx});
    }
}

std::int64_t Arrivals::Thinning::next(base::RandomStream& random) {
    const std::int64_t first_live = first_filled_from(first_live_crossing());
    vetoed_ += first_live - (last_filled_ + 1);
    last_filled_ = first_live + random.geometric(probability_);
    last_crossing_ = crossing_of(last_filled_);
    for (Bucket& bucket : buckets_) {
        bucket.fill(last_crossing_);
    }
    return last_crossing_;
}

double Arrivals::Thinning::filled_fraction() const {
    return static_cast<double>(filled_.size()) / static_cast<double>(orbit_);
}

std::int64_t Arrivals::Thinning::first_live_crossing() const {
    if (last_crossing_ < 0) {
        return 0;
    }
    std::int64_t live = last_crossing_ + 1 + simple_dead_time_;
    for (const Bucket& bucket : buckets_) {
        live = std::max(live, bucket.first_with_room());
    }
    return live;
}

std::int64_t Arrivals::Thinning::first_filled_from(std::int64_t crossing) const {
    const auto in_orbit = std::lower_bound(filled_.begin(), filled_.end(), crossing % orbit_);
    return crossing / orbit_ * std::ssize(filled_) + (in_orbit - filled_.begin());
}

std::int64_t Arrivals::Thinning::crossing_of(std::int64_t filled) const {
    const std::int64_t per_orbit = std::ssize(filled_);
    return filled / per_orbit * orbit_ + filled_[static_cast<std::size_t>(filled % per_orbit)];
}

std::int64_t Arrivals::Thinning::Bucket::first_with_room() const {
    const std::int64_t excess = level + trigger - capacity;
    return excess <= 0 ? at : at + (excess + leak_per_bx - 1) / leak_per_bx;
}

void Arrivals::Thinning::Bucket::fill(std::int64_t crossing) {
    const std::int64_t elapsed = crossing - at;
    level = elapsed > level / leak_per_bx ? 0 : level - elapsed * leak_per_bx;
    level += trigger;
    at = crossing;
}

}  // namespace daqloom::protocol

#include "protocol/schedule/lhc_trigger.hpp"

#include <algorithm>
#include <cstddef>

namespace daqloom::protocol {

LhcTrigger::LhcTrigger(const std::vector<std::uint8_t>& filling_scheme,
                       std::uint32_t simple_dead_time_bx,
                       const std::vector<LeakyBucket>& complex_dead_time)
    : simple_dead_time_(simple_dead_time_bx) {
    if (!filling_scheme.empty()) {
        orbit_ = std::ssize(filling_scheme);
        filled_.clear();
        for (std::size_t i = 0; i < filling_scheme.size(); ++i) {
            if (filling_scheme[i] != 0) {
                filled_.push_back(static_cast<std::int64_t>(i));
            }
        }
    }
    for (const LeakyBucket& bucket : complex_dead_time) {
        buckets_.push_back({.leak_per_bx = bucket.triggers,
                            .trigger = bucket.window_bx,
                            .capacity = std::int64_t{bucket.triggers} * bucket.window_bx});
    }
}

std::int64_t LhcTrigger::next(base::RandomStream& random) {
    const std::int64_t first_live = first_filled_from(first_live_crossing());
    vetoed_ += first_live - (last_filled_ + 1);
    last_filled_ = first_live + random.geometric(probability_);
    last_crossing_ = crossing_of(last_filled_);
    for (Bucket& bucket : buckets_) {
        bucket.fill(last_crossing_);
    }
    return last_crossing_;
}

/// Finds 1/p by bisection. The mean distance is 1/p (the mean of the geometric variable) plus the
/// mean number of vetoed crossings. It rises with 1/p, because all pilot runs use the same random
/// numbers and each accepted crossing is a non-decreasing function of earlier draws.
double LhcTrigger::set_mean_distance(double filled_crossings) {
    double high = filled_crossings;
    if (simple_dead_time_ > 0 || !buckets_.empty()) {
        constexpr double tolerance = 1e-5;
        for (double low = 1; high - low > tolerance * low;) {
            const double middle = (low + high) / 2;
            (measured_mean_distance(middle) < filled_crossings ? low : high) = middle;
        }
    }
    probability_ = 1 / high;
    return measured_mean_distance(high);
}

double LhcTrigger::measured_mean_distance(double inverse_probability) const {
    if (simple_dead_time_ == 0 && buckets_.empty()) {
        return inverse_probability;
    }
    constexpr int warm_up = 4'096;  // fills the largest bucket
    constexpr int measured = 32'768;
    LhcTrigger pilot = *this;
    pilot.probability_ = 1 / inverse_probability;
    base::RandomStream random(0, "dead-time calibration");
    for (int i = 0; i < warm_up; ++i) {
        pilot.next(random);
    }
    const std::int64_t vetoed_before = pilot.vetoed_;
    for (int i = 0; i < measured; ++i) {
        pilot.next(random);
    }
    return inverse_probability + static_cast<double>(pilot.vetoed_ - vetoed_before) / measured;
}

std::int64_t LhcTrigger::first_live_crossing() const {
    if (last_crossing_ < 0) {
        return 0;
    }
    std::int64_t live = last_crossing_ + 1 + simple_dead_time_;
    for (const Bucket& bucket : buckets_) {
        live = std::max(live, bucket.first_crossing_with_room());
    }
    return live;
}

std::int64_t LhcTrigger::first_filled_from(std::int64_t crossing) const {
    const auto in_orbit = std::lower_bound(filled_.begin(), filled_.end(), crossing % orbit_);
    return crossing / orbit_ * std::ssize(filled_) + (in_orbit - filled_.begin());
}

std::int64_t LhcTrigger::crossing_of(std::int64_t filled) const {
    const std::int64_t per_orbit = std::ssize(filled_);
    return filled / per_orbit * orbit_ + filled_[static_cast<std::size_t>(filled % per_orbit)];
}

std::int64_t LhcTrigger::Bucket::first_crossing_with_room() const {
    const std::int64_t excess = level + trigger - capacity;
    return excess <= 0 ? at : at + (excess + leak_per_bx - 1) / leak_per_bx;
}

void LhcTrigger::Bucket::fill(std::int64_t crossing) {
    const std::int64_t elapsed = crossing - at;
    level = elapsed > level / leak_per_bx ? 0 : level - elapsed * leak_per_bx;
    level += trigger;
    at = crossing;
}

}  // namespace daqloom::protocol

#include "protocol/data/event_size.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Bytes;
using Kind = EventSizeConfig::Kind;

constexpr Bytes largest_event = Bytes{1} << 40;
constexpr std::size_t most_bins = 1'000'000;
/// Limit for `gaussian`: cutting sizes off below zero then adds less than 0.02 % to the mean.
constexpr double largest_gaussian_spread = 1.0 / 3.0;
/// Limit for `gamma`: above it, nearly all events are empty and a few are gigantic.
constexpr double largest_gamma_spread = 10.0;

base::expected<void> check_spread(const EventSizeConfig& config, double largest_share,
                                  const char* distribution) {
    const double largest = largest_share * static_cast<double>(config.mean);
    DAQLOOM_REFUSE_IF(!(config.spread_bytes > 0 && config.spread_bytes <= largest),
                      "{} spread of {} bytes; give more than 0, at most {}", distribution,
                      config.spread_bytes, largest);
    return {};
}

base::expected<void> check_histogram(const std::vector<EventSizeConfig::Bin>& bins) {
    DAQLOOM_REFUSE_IF(bins.empty() || bins.size() > most_bins, "histogram of {} bins; give 1 to {}",
                      bins.size(), most_bins);
    double total = 0;
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const auto& [lower, upper, weight] = bins[i];
        DAQLOOM_REFUSE_IF(lower < 1 || upper < lower || upper > largest_event,
                          "histogram bin {} from {} to {} bytes; give 1 <= lower <= upper <= {}",
                          i + 1, lower, upper, largest_event);
        DAQLOOM_REFUSE_IF(!(weight >= 0 && weight <= 1e18),
                          "histogram bin {} of weight {}; give 0 to 1e18", i + 1, weight);
        total += weight;
    }
    DAQLOOM_REFUSE_IF(total <= 0, "histogram whose weights are all 0; give one a positive weight");
    return {};
}

base::expected<void> check(const EventSizeConfig& config) {
    if (config.kind == Kind::histogram) {
        return check_histogram(config.histogram);
    }
    DAQLOOM_REFUSE_IF(config.mean < 1 || config.mean > largest_event,
                      "mean of {} bytes; give 1 to {}", config.mean, largest_event);
    switch (config.kind) {
        case Kind::gaussian:
            return check_spread(config, largest_gaussian_spread, "gaussian");
        case Kind::gamma:
            return check_spread(config, largest_gamma_spread, "gamma");
        case Kind::poisson:
            DAQLOOM_REFUSE_IF(config.quantum < 1 || config.quantum > config.mean,
                              "quantum of {} bytes; give 1 to the mean of {}", config.quantum,
                              config.mean);
            return {};
        case Kind::fixed:
        case Kind::histogram:
            break;
    }
    return {};
}

std::discrete_distribution<std::size_t> choice_of_bin(
    const std::vector<EventSizeConfig::Bin>& bins) {
    std::vector<double> weights;
    for (const auto& bin : bins) {
        weights.push_back(bin.weight);
    }
    return {weights.begin(), weights.end()};
}

Bytes whole_bytes(double size) {
    return static_cast<Bytes>(
        std::clamp(std::round(size), 1.0, static_cast<double>(largest_event)));
}

}  // namespace

base::expected<EventSizes> EventSizes::make(EventSizeConfig config, base::RandomStream random) {
    DAQLOOM_CHECK(base::about("event size: ", check(config)));
    return EventSizes(std::move(config), std::move(random));
}

EventSizes::EventSizes(EventSizeConfig config, base::RandomStream random)
    : config_(std::move(config)),
      random_(std::move(random)),
      bin_(choice_of_bin(config_.histogram)) {}

Bytes EventSizes::next() {
    const auto mean = static_cast<double>(config_.mean);
    const double spread = config_.spread_bytes;
    switch (config_.kind) {
        case Kind::gaussian:
            return whole_bytes(random_.normal(mean, spread));
        case Kind::gamma:  // mean = shape · scale, variance = shape · scale²
            return whole_bytes(
                random_.gamma(mean * mean / (spread * spread), spread * spread / mean));
        case Kind::poisson: {
            const auto quantum = static_cast<double>(config_.quantum);
            return whole_bytes(quantum * static_cast<double>(random_.poisson(mean / quantum)));
        }
        case Kind::histogram:
            return draw_from_histogram();
        case Kind::fixed:
            break;
    }
    return config_.mean;
}

Bytes EventSizes::draw_from_histogram() {
    const auto& bin = config_.histogram[bin_(random_)];
    const auto sizes = static_cast<std::uint64_t>(bin.upper - bin.lower + 1);
    return bin.lower + static_cast<Bytes>(random_.uniform_int(sizes));
}

FragmentShares::FragmentShares(std::uint32_t readouts, const std::vector<double>& weights)
    : readouts_(readouts) {
    if (weights.empty()) {
        return;
    }
    cumulative_.push_back(0);
    for (const double weight : weights) {
        cumulative_.push_back(cumulative_.back() + weight);
    }
    const double total = cumulative_.back();
    for (double& sum : cumulative_) {
        sum /= total;
    }
}

}  // namespace daqloom::protocol

#include "protocol/fragment_sizes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Bytes;

constexpr Bytes largest_event = Bytes{1} << 40;
constexpr Bytes largest_overhead = Bytes{1} << 30;
constexpr std::uint32_t most_packing = 10'000'000;
constexpr std::uint64_t most_sources = 1'000'000;
/// The mean of an MFP; its packet size is a 32-bit number.
constexpr double largest_mean = 4e9;
/// Shares are given with a few digits.
constexpr double tolerance = 1e-6;

std::optional<std::string> problem_of_groups(const FragmentSizesConfig& config) {
    double shares = 0;
    std::uint64_t sources = 0;
    for (const auto [group_sources, share] : config.groups) {
        if (group_sources < 1 || !(share > 0 && share <= 1)) {
            return fmt::format(
                "group of {} sources with a share of {}; give at least 1 source and "
                "a share above 0, up to 1",
                group_sources, share);
        }
        sources += group_sources;
        shares += share;
    }
    if (config.groups.empty() || std::abs(shares - 1) > tolerance) {
        return fmt::format(
            "{} groups of sources with {} of the event; give groups that share all "
            "of it",
            config.groups.size(), shares);
    }
    if (sources > most_sources) {
        return fmt::format("{} sources; give at most {}", sources, most_sources);
    }
    return std::nullopt;
}

std::optional<std::string> problem_of(const FragmentSizesConfig& config) {
    if (config.event < 1 || config.event > largest_event) {
        return fmt::format("event of {} bytes; give 1 to {}", config.event, largest_event);
    }
    if (config.packing < 1 || config.packing > most_packing) {
        return fmt::format("packing of {} fragments; give 1 to {}", config.packing, most_packing);
    }
    if (config.overhead < 0 || config.overhead > largest_overhead) {
        return fmt::format("overhead of {} bytes; give 0 to {}", config.overhead, largest_overhead);
    }
    if (auto problem = problem_of_groups(config)) {
        return problem;
    }
    for (const auto [sources, share] : config.groups) {
        const double mean = static_cast<double>(config.event) * share / sources * config.packing;
        if (mean > largest_mean) {
            return fmt::format("MFPs of {} bytes; give fewer than {}", mean, largest_mean);
        }
    }
    return std::nullopt;
}

}  // namespace

Bytes largest_mfp(FragmentSizesConfig::Kind kind, Bytes mean) {
    return kind == FragmentSizesConfig::Kind::fixed
               ? std::max<Bytes>(mean, 1)
               : mean + 10 * static_cast<Bytes>(std::sqrt(mean)) + 64;
}

base::Bytes MfpSizes::next() {
    const Bytes payload = kind_ == FragmentSizesConfig::Kind::fixed
                              ? static_cast<Bytes>(std::llround(mean_bytes_))
                              : random_.poisson(mean_bytes_);
    return std::max<Bytes>(payload + overhead_, 1);
}

base::expected<FragmentSizes> FragmentSizes::make(FragmentSizesConfig config) {
    if (const auto problem = problem_of(config)) {
        return base::failure("fragment sizes: " + *problem);
    }
    return FragmentSizes(std::move(config));
}

FragmentSizes::FragmentSizes(FragmentSizesConfig config) : config_(std::move(config)) {
    for (const SourceGroup& group : config_.groups) {
        sources_ += group.sources;
    }
}

double FragmentSizes::mean_bytes(std::uint32_t source) const {
    auto group = config_.groups.begin();
    for (; source >= group->sources; ++group) {
        source -= group->sources;
    }
    return static_cast<double>(config_.event) * group->share / group->sources;
}

MfpSizes FragmentSizes::of(std::uint32_t source, std::uint64_t seed) const {
    return {config_.kind, mean_bytes(source) * config_.packing, config_.overhead,
            base::RandomStream(seed, fmt::format("fragment sizes {}", source))};
}

}  // namespace daqloom::protocol

// Random delays of responses, processing steps and acknowledgements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/fields.hpp"
#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::base {

/// A random delay. Draws below zero count as zero, which raises the mean of a wide gaussian or
/// uniform distribution: for a gaussian with spread = mean / 3, by 0.04 % of the spread.
struct DelayDistribution {
    enum class Kind {
        fixed,        ///< always `mean`; draws nothing from the stream
        exponential,  ///< `spread` has no meaning
        gaussian,     ///< `spread` is the standard deviation
        uniform,      ///< between mean − spread and mean + spread
        measured,     ///< one of `values`, weighted by how often each was measured
    };

    DAQLOOM_FIELDS(DelayDistribution, (Kind, kind, "Distribution.", Kind::fixed),
                   (Time, mean, "Mean, or the delay itself."),
                   (Time, spread, "Width of a gaussian or uniform distribution."))
    /// Measured delays; if empty, the mean is drawn. `cumulative_weights[i]` is the cumulative
    /// weight of the first i + 1 values, which may be fractional, and increases.
    std::vector<Time> values = {};
    std::vector<double> cumulative_weights = {};

    static constexpr Time longest{std::int64_t{1} << 62};

    /// A delay of at least 0 and at most 2^62 ps (53 days).
    [[nodiscard]] Time draw(RandomStream& random) const {
        return kind == Kind::fixed ? std::clamp(mean, Time::zero(), longest) : draw_from(random);
    }

  private:
    [[nodiscard]] Time draw_from(RandomStream& random) const {
        const auto centre = static_cast<double>(mean.ps);
        const auto width = static_cast<double>(spread.ps);
        switch (kind) {
            case Kind::fixed:
                break;
            case Kind::exponential:
                return bounded(random.exponential(centre));
            case Kind::gaussian:
                return bounded(random.normal(centre, width));
            case Kind::uniform:
                return bounded(centre + width * (2.0 * random.uniform() - 1.0));
            case Kind::measured: {
                if (cumulative_weights.empty()) {
                    break;
                }
                const auto found =
                    std::upper_bound(cumulative_weights.begin(), cumulative_weights.end() - 1,
                                     random.uniform() * cumulative_weights.back());
                const auto place = static_cast<std::size_t>(found - cumulative_weights.begin());
                return std::clamp(values[place], Time::zero(), longest);
            }
        }
        return std::clamp(mean, Time::zero(), longest);
    }

    static Time bounded(double ps) {
        return {
            static_cast<std::int64_t>(std::clamp(ps + 0.5, 0.0, static_cast<double>(longest.ps)))};
    }
};

/// The sum of successive delays, at most 2^62 ps.
inline Time draw_total(std::span<const DelayDistribution> stages, RandomStream& random) {
    Time total;
    for (const DelayDistribution& stage : stages) {
        const Time delay = stage.draw(random);
        total = std::min(total, DelayDistribution::longest - delay) + delay;
    }
    return total;
}

}  // namespace daqloom::base

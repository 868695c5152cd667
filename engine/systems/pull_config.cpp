#include "systems/pull_config.hpp"

#include <cmath>
#include <string>

namespace daqloom::systems {

using base::Bytes;
using base::Time;

namespace {

constexpr Bytes kLargestMessage = Bytes{1} << 40;

base::expected<void> fails(const char* why) { return base::failure(std::string(why)); }

bool within(Time value, Time highest) { return value >= Time::zero() && value <= highest; }

base::expected<void> check_share(const PullSystemConfig& config) {
    if (config.share.empty()) {
        return {};
    }
    bool positive = config.share.size() == config.readouts.size();
    double sum = 0;
    for (const double share : config.share) {
        positive = positive && share > 0;
        sum += share;
    }
    return positive && std::isfinite(sum)
               ? base::expected<void>{}
               : fails(
                     "shares of the event are given for each readout unit or for none, above "
                     "zero");
}

}  // namespace

base::expected<void> validate(const PullSystemConfig& config) {
    if (config.readouts.empty() || config.builders.empty()) {
        return fails("pull building needs one readout unit and one builder unit at least");
    }
    if (config.request_size < 1 || config.request_size > kLargestMessage) {
        return fails("a request has 1 B to 1 TiB");
    }
    if (!within(config.readout_cost_per_message, base::seconds(100)) ||
        !within(config.builder_cost_per_message, base::seconds(100))) {
        return fails("a message costs its host 0 to 100 s");
    }
    return check_share(config);
}

}  // namespace daqloom::systems

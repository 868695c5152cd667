#include "ethernet/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace daqloom::ethernet {

base::expected<void> validate(const Schedule& schedule) {
    const std::uint32_t most = *std::max_element(schedule.weights.begin(), schedule.weights.end());
    if (schedule.scheduling != Scheduling::weighted && most > 0) {
        return base::failure(
            std::string("weights of classes, which are not scheduled by weight; expected none"));
    }
    if (schedule.scheduling == Scheduling::weighted && (most == 0 || most > kMostWeight)) {
        return base::failure(fmt::format(
            "the greatest weight of a class is {}; expected 1 to {}, and 0 of a class with strict "
            "priority",
            most, kMostWeight));
    }
    return {};
}

}  // namespace daqloom::ethernet

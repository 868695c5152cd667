#include "protocol/run/run_plan.hpp"

#include <algorithm>

namespace daqloom::protocol {

std::vector<UnitIndex> RunPlan::builders_among(const std::set<UnitIndex>& members) const {
    if (builders.empty()) {
        return {members.begin(), members.end()};
    }
    std::vector<UnitIndex> found;
    for (const UnitIndex unit : builders) {
        if (members.contains(unit)) {
            found.push_back(unit);
        }
    }
    return found;
}

bool RunPlan::is_viable(const std::set<UnitIndex>& members) const {
    return !members.empty() && members.size() >= fewest_members &&
           std::ranges::any_of(members, [&](UnitIndex unit) { return is_readout(unit); }) &&
           !builders_among(members).empty();
}

}  // namespace daqloom::protocol

// Reports of unreachable units, and which of these reports are credible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// Units that other units cannot reach, each with the units that report this.
using Suspicions = std::map<UnitIndex, std::set<UnitIndex>>;

/// Adds the units that member `by` cannot reach, if they are members other than `by`.
template <class Units>
void add_suspicions(Suspicions& suspicions, UnitIndex by, const Units& suspects,
                    const std::set<UnitIndex>& members) {
    for (const UnitIndex unit : suspects) {
        if (unit != by && members.contains(unit)) {
            suspicions[unit].insert(by);
        }
    }
}

/// Whether a suspected unit is unreachable. A single reporter, or a minority of the other members,
/// may itself be unreachable.
[[nodiscard]] constexpr bool is_confirmed(std::size_t reporters, std::size_t others) {
    return reporters > 1 && 2 * reporters > others;
}

/// The unit with the most reporters; the last one of several. Precondition: there is a suspect.
[[nodiscard]] inline UnitIndex worst(const Suspicions& suspicions) {
    const auto found = std::ranges::max_element(suspicions, [](const auto& a, const auto& b) {
        return std::pair(a.second.size(), a.first) < std::pair(b.second.size(), b.first);
    });
    return found->first;
}

}  // namespace daqloom::protocol

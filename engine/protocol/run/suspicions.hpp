// Reports of units that others are unreachable, and which of these reports to believe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// For each unit that others cannot reach, the units that report so.
using Suspicions = std::map<UnitIndex, std::set<UnitIndex>>;

/// Adds the units that a member cannot reach; only members count, and not the member itself.
template <class Units>
void add_suspicions(Suspicions& suspicions, UnitIndex by, const Units& suspects,
                    const std::set<UnitIndex>& members) {
    for (const UnitIndex unit : suspects) {
        if (unit != by && members.contains(unit)) {
            suspicions[unit].insert(by);
        }
    }
}

/// Whether a suspect is unreachable. A single reporter, or a minority of the `others`, may be
/// the unreachable one itself.
[[nodiscard]] constexpr bool is_confirmed(std::size_t reporters, std::size_t others) {
    return reporters > 1 && 2 * reporters > others;
}

/// The unit that most others cannot reach; of several such, the last. There is one.
[[nodiscard]] inline UnitIndex worst(const Suspicions& suspicions) {
    const auto found = std::ranges::max_element(suspicions, [](const auto& a, const auto& b) {
        return std::pair(a.second.size(), a.first) < std::pair(b.second.size(), b.first);
    });
    return found->first;
}

}  // namespace daqloom::protocol

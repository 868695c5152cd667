// What waits in the event queue.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::sim {

/// Something that happens at a time: what, and to which object, is the caller's business.
struct Event {
    base::Time at;
    std::uint32_t kind = 0;
    std::uint32_t index = 0;

    friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace daqloom::sim

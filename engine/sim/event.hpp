// An event of the event queue.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::sim {

/// An event at a time. The caller defines the meaning of its kind and its index.
struct Event {
    base::Time at;
    std::uint32_t kind = 0;
    std::uint32_t index = 0;

    friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace daqloom::sim

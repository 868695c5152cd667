// An event of the event queue.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::sim {

/// An event at a time. The user of the queue defines the meaning of `kind` and `index`.
struct Event {
    base::Time at;
    std::uint32_t kind = 0;
    std::uint32_t index = 0;

    friend bool operator==(const Event&, const Event&) = default;
};

}  // namespace daqloom::sim

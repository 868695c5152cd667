// Sharing of a port's wire among the classes of frames.
#pragma once

#include <array>
#include <cstdint>

#include "base/fields.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

enum class Scheduling : std::uint8_t {
    fifo,      ///< classes make no difference
    strict,    ///< the highest class with frames goes first
    weighted,  ///< shares of the wire, behind the classes of strict priority
};

inline constexpr std::uint32_t kMostWeight = 1000;

struct Schedule {
    using Weights = std::array<std::uint32_t, kTrafficClasses>;
    DAQLOOM_FIELDS(Schedule,
                   (Scheduling, scheduling, "Order of the frames on a wire.", Scheduling::fifo),
                   (Weights, weights, "Weight of each class of `weighted`; 0: strict priority."))
};

}  // namespace daqloom::ethernet

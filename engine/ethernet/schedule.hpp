// How a port shares its wire among the classes of frames.
#pragma once

#include <array>
#include <cstdint>

#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

enum class Scheduling : std::uint8_t {
    fifo,      ///< classes make no difference
    strict,    ///< of the classes that have frames, the highest
    weighted,  ///< shares of the wire, behind the classes of strict priority
};

inline constexpr std::uint32_t kMostWeight = 1000;

struct Schedule {
    Scheduling scheduling = Scheduling::fifo;
    /// Of `weighted`, by class; 0: strict priority.
    std::array<std::uint32_t, kTrafficClasses> weights{};
};

}  // namespace daqloom::ethernet

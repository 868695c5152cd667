// The choice of one of several equal-cost links to the same host (ECMP).
#pragma once

#include <cstdint>

#include "base/random.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

/// The link, among `links`, for all frames to an endpoint: uniformly distributed over consecutive
/// endpoints, and independent for the two ends of a connection and for switches with different
/// seeds. The upper half of the mixed bits is scaled to the number of links.
constexpr std::uint32_t link_of_flow(EndpointIndex to, std::uint32_t seed, std::uint32_t links) {
    const std::uint64_t hash = base::mixed(std::uint64_t{seed} << 32 | to.value());
    return static_cast<std::uint32_t>((hash >> 32) * links >> 32);
}

}  // namespace daqloom::ethernet

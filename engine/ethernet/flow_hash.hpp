// The choice of one of several links that lead to the same host (ECMP).
#pragma once

#include <cstdint>

#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

/// The link, one of `links`, of all frames to an endpoint: uniform over consecutive endpoints, and
/// independent for the two ends of a connection and for switches with different seeds. The
/// finaliser of splitmix64 (G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom
/// Number Generators", OOPSLA 2014), whose upper half is scaled to the number of links.
constexpr std::uint32_t link_of_flow(EndpointIndex to, std::uint32_t seed, std::uint32_t links) {
    std::uint64_t z = std::uint64_t{seed} << 32 | to.value();
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    return static_cast<std::uint32_t>((z >> 32) * links >> 32);
}

}  // namespace daqloom::ethernet

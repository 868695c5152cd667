// Changes of a link, one direction of a cable, during a run.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::infiniband {

enum class LinkState : std::uint8_t {
    up,
    /// The failure is not yet noticed: packets on the wire are lost, the output sends nothing, and
    /// its packets wait.
    dark,
    /// The output drops its packets, as fast as it would send them.
    down,
};

/// Link 2c leads from end a of cable c to its end b, link 2c + 1 back.
struct LinkChange {
    enum class What : std::uint8_t {
        rate,    ///< sets the rate of packets that begin from now on
        errors,  ///< sets the share of bits with an error
        dark,    ///< see LinkState
        down,
        up,
    };

    base::Time at{};
    std::uint32_t link = 0;
    What what = What::down;
    base::BitRate rate{0};
    /// Share of bits with an error. A packet with one is lost, unless the link retransmits it.
    double bit_errors = 0;
    /// Delay of a link-level retransmission; zero: there is none.
    base::Time link_retry{};
};

}  // namespace daqloom::infiniband

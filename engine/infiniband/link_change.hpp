// Changes, during a run, of a link, which is one direction of a cable.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::infiniband {

enum class LinkState : std::uint8_t {
    up,
    /// The failure is not yet detected: packets on the wire are lost, the output sends nothing, and
    /// its packets wait.
    dark,
    /// The failure is detected: the output drops its packets, at the rate of the link.
    down,
};

/// Link 2c leads from end a of cable c to end b, link 2c + 1 from end b to end a.
struct LinkChange {
    enum class What : std::uint8_t {
        rate,    ///< sets the rate of packets that begin from now on
        errors,  ///< sets the share of bits with an error
        dark,    ///< see LinkState
        down,
        up,
    };

    DAQLOOM_FIELDS(
        LinkChange, (base::Time, at, "Time of the change."),
        (std::uint32_t, link, "Link 2c leads from end a of cable c to its end b, 2c + 1 back."),
        (What, what, "Kind of the change.", What::down), (base::BitRate, rate, "Rate of the wire."),
        (double, bit_errors,
         "Share of bits with an error. A packet with one is lost, unless the link "
         "retransmits it."),
        (base::Time, link_retry, "Delay of a link-level retransmission; 0: there is none."))
};

}  // namespace daqloom::infiniband

// What happens to a link, one direction of a cable, during a run.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::infiniband {

enum class LinkState : std::uint8_t {
    up,
    /// Nobody has noticed yet: what is on the wire is lost, its output sends nothing, and what it
    /// has to send waits.
    dark,
    /// Its output drops what it has to send, as fast as it would send it.
    down,
};

/// Link 2c leads from end a of cable c to its end b, link 2c + 1 back.
struct LinkChange {
    enum class What : std::uint8_t {
        rate,    ///< another rate, of packets that begin from now on
        errors,  ///< another share of bits with an error
        dark,    ///< see LinkState
        down,
        up,
    };

    base::Time at{};
    std::uint32_t link = 0;
    What what = What::down;
    base::BitRate rate{0};
    /// Of bits. A packet with an error is lost, unless the link itself sends it again.
    double bit_errors = 0;
    /// So much later than it would have begun; zero: the link does not send it again.
    base::Time link_retry{};
};

}  // namespace daqloom::infiniband

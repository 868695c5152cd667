// What is done with frames that a rule, or an entry of a controller, matches.
#pragma once

#include <cstdint>

#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

struct Action {
    enum class What : std::uint8_t {
        queue,    ///< into a ring
        port,     ///< into the ring of a port for its class
        forward,  ///< where it would go without this rule
        flood,    ///< to all ports but that by which it came
        drop,
    };
    What what = What::forward;
    RingIndex ring{};
    PortIndex port{};
};

}  // namespace daqloom::softswitch

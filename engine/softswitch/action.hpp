// Action on frames that match a rule of the switch or a flow entry of an OpenFlow controller.
#pragma once

#include <cstdint>

#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

struct Action {
    enum class What : std::uint8_t {
        queue,    ///< into ring `ring`
        port,     ///< into the ring of port `port` for the class of the frame
        forward,  ///< where it would go without this rule
        flood,    ///< to all ports but the ingress port
        drop,
    };
    What what = What::forward;
    RingIndex ring{};
    PortIndex port{};
};

}  // namespace daqloom::softswitch

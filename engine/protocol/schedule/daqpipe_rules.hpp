// The rules of DAQPIPE, which all its units share.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::protocol {

struct DaqpipeRules {
    bool is_push = false;              ///< readout units decide when to send; else builder units
    std::uint32_t credits = 1;         ///< events that a builder unit collects at a time
    std::uint32_t parallel_sends = 1;  ///< fragments of an event in flight
    base::Time slot = base::Time::zero();  ///< length of a time slot; zero: untimed
};

}  // namespace daqloom::protocol

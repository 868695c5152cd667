// What happens to a link during a run.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct LinkChange {
    enum class What : std::uint8_t {
        rate,  ///< another rate, of frames that begin from now on; one on the wire ends at its own
        pace,  ///< another pace, or none; the time after a frame that has begun is as it was
        hold,  ///< no frame of a class begins any more (a pause frame came)
        resume,  ///< of that class
        down,    ///< what is on the wire is lost; the sender finishes its frame all the same
        up,
    };

    base::Time at{};
    LinkIndex link = {};
    What what = What::down;
    base::BitRate rate{0};         ///< of the wire, or of the pace; 0: no pace
    TrafficClass traffic_class{};  ///< to be held; all are if the port does not tell them apart
    bool drops = false;            ///< down: drops what waits and what comes, else it waits
};

}  // namespace daqloom::ethernet

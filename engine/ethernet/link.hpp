// A link, one direction of a cable: what it is, where it leads, and what it has counted.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/schedule.hpp"

namespace daqloom::ethernet {

struct LinkConfig {
    base::BitRate rate;
    base::Time delay;
    base::BitRate rate_limit{0};  ///< pacing below the line rate, in wire bits; 0: none
    Schedule schedule{};          ///< of a host's link; those of a switch are the switch's
    bool changes = false;         ///< during the run: see LinkChange
};

struct LinkCounters {
    std::uint64_t frames = 0;      ///< delivered at the far end
    std::uint64_t ack_frames = 0;  ///< of those, without payload
    std::int64_t frame_bytes = 0;  ///< delivered, as buffered

    /// Bytes of wire occupied by the frames delivered, preambles and gaps counted.
    [[nodiscard]] std::int64_t wire_bytes() const {
        return frame_bytes + static_cast<std::int64_t>(frames) * kWireOverhead;
    }
};

/// Where a link begins and ends: at a port of a switch, or at a host.
struct Wiring {
    SwitchIndex from_switch = SwitchIndex::none();  ///< none: a host
    std::uint16_t from_port = 0;
    SwitchIndex to_switch = SwitchIndex::none();
    std::uint16_t to_port = 0;

    [[nodiscard]] bool from_host() const { return from_switch == SwitchIndex::none(); }
    [[nodiscard]] bool to_host() const { return to_switch == SwitchIndex::none(); }
};

}  // namespace daqloom::ethernet

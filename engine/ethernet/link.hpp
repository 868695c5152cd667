// A link, one direction of a cable: what it is, where it leads, what it has counted, and what
// happens to it during a run.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/schedule.hpp"

namespace daqloom::ethernet {

struct LinkConfig {
    base::BitRate rate;
    base::Time delay;
    Schedule schedule{};   ///< of a host's link; those of a switch are the switch's
    bool changes = false;  ///< during the run: see LinkChange
    /// Of a shaper in place of a wire: bytes on the wire that leave at once after a pause (a token
    /// bucket: tbf(8), RFC 2697); 0: a wire, which takes its time for each bit.
    base::Bytes bucket = 0;
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

/// What happens to a link during a run.
struct LinkChange {
    enum class What : std::uint8_t {
        rate,  ///< another rate, of frames that begin from now on; one on the wire ends at its own
        pace,  ///< another pace, or none; the time after a frame that has begun is as it was
        hold,  ///< no frame of a class begins any more (a pause frame came)
        resume,  ///< of that class
        down,    ///< what is on the wire is lost; the sender finishes its frame all the same
        up,
        errors,  ///< another share of bits with an error, which lose their frames
    };

    base::Time at{};
    LinkIndex link = {};
    What what = What::down;
    base::BitRate rate{0};         ///< of the wire, or of the pace; 0: no pace
    TrafficClass traffic_class{};  ///< to be held; all are if the port does not tell them apart
    bool drops = false;            ///< down: drops what waits and what comes, else it waits
    double bit_errors = 0;         ///< of bits, 0 to 1
};

}  // namespace daqloom::ethernet

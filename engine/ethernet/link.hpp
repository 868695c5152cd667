// A link is one direction of a cable: configuration, wiring, counters, and changes during a run.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/schedule.hpp"

namespace daqloom::ethernet {

struct LinkConfig {
    base::BitRate rate;
    base::Time delay;
    Schedule schedule{};   ///< of a host's link; a switch has its own
    bool changes = false;  ///< changes during the run: see LinkChange
    /// Token-bucket depth of a shaper: bytes on the wire that leave at once after a pause (tbf(8),
    /// RFC 2697). 0: the link is a wire without shaping, and each bit takes its time.
    base::Bytes bucket = 0;
};

struct LinkCounters {
    std::uint64_t frames = 0;      ///< delivered at the far end
    std::uint64_t ack_frames = 0;  ///< delivered frames without payload
    std::int64_t frame_bytes = 0;  ///< delivered, as buffered

    /// Bytes of wire occupied by the delivered frames, preambles and gaps included.
    [[nodiscard]] std::int64_t wire_bytes() const {
        return frame_bytes + static_cast<std::int64_t>(frames) * kWireOverhead;
    }
};

/// The two ends of a link; each end is a port of a switch, or a host.
struct Wiring {
    SwitchIndex from_switch = SwitchIndex::none();  ///< none: a host
    std::uint16_t from_port = 0;
    SwitchIndex to_switch = SwitchIndex::none();
    std::uint16_t to_port = 0;

    [[nodiscard]] bool from_host() const { return from_switch == SwitchIndex::none(); }
    [[nodiscard]] bool to_host() const { return to_switch == SwitchIndex::none(); }
};

/// A change of a link during a run.
struct LinkChange {
    enum class What : std::uint8_t {
        rate,    ///< sets the rate of frames that begin from now on
        pace,    ///< sets or removes the pace; the gap after a frame that has begun stays
        hold,    ///< stops a class (a pause frame arrived)
        resume,  ///< lets the class go on
        down,    ///< the frames on the wire are lost; the sender finishes its frame all the same
        up,
        errors,  ///< sets the share of bits with an error, which lose their frames
    };

    DAQLOOM_FIELDS(LinkChange, (base::Time, at, "Time of the change."),
                   (LinkIndex, link,
                    "Link 2c leads from end a of cable c to its end b, 2c + 1 back."),
                   (What, what, "Kind of the change.", What::down),
                   (base::BitRate, rate, "Rate of the wire, or pace; 0: no pace."),
                   (TrafficClass, traffic_class, "Class to hold; any on a port without classes."),
                   (bool, drops, "Down: drops waiting and arriving frames, else they wait."),
                   (double, bit_errors, "Share of bits with an error, 0 to 1."))
};

}  // namespace daqloom::ethernet

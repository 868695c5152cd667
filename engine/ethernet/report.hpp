// Counts of an Ethernet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct LinkReport {
    DAQLOOM_FIELDS(LinkReport, (std::uint64_t, frames, "Frames delivered."),
                   (std::uint64_t, ack_frames, "Frames delivered without payload."),
                   (base::Bytes, wire_bytes,
                    "Bytes of the frames on the wire, preambles and gaps included."),
                   (base::BitRate, rate, "Rate of the link, at the end."),
                   (std::uint64_t, drops, "Frames dropped in front of the link."))
};

/// Counts of one traffic class at a link whose port distinguishes classes.
struct ClassReport {
    DAQLOOM_FIELDS(ClassReport, (LinkIndex, link, "Number of the link."),
                   (TrafficClass, traffic_class, "Number of the traffic class."),
                   (std::uint64_t, frames, "Frames sent."),
                   (base::Bytes, wire_bytes,
                    "Bytes of the frames on the wire, preambles and gaps included."),
                   (std::uint64_t, drops, "Frames dropped in front of the link."))

    [[nodiscard]] bool is_empty() const { return frames == 0 && drops == 0; }
};

struct SwitchReport {
    DAQLOOM_FIELDS(SwitchReport, (base::Bytes, peak_bytes, "Peak of the bytes in each switch."),
                   (base::Time, peak_at, "Time of the first peak."),
                   (base::Bytes, needed_bytes,
                    "The smallest shared memory that would have admitted the same frames; 0 of a "
                    "switch without shared memory."))
};

/// Counts since counting began.
struct Report {
    DAQLOOM_FIELDS(Report, (std::uint64_t, drops, "Frames dropped by switches."),
                   (std::uint64_t, injected_losses, "Frames lost as configured."),
                   (std::uint64_t, cut,
                    "Frames lost on the wire, by bit errors or as the link went down."),
                   (std::uint64_t, marks, "Frames marked for congestion (ECN)."),
                   (std::uint64_t, pauses,
                    "Pause frames of software switches, those that end a pause included."))

    std::vector<LinkReport> links;
    std::vector<ClassReport> classes;  ///< classes that had frames, if there were several
    std::vector<SwitchReport> switches;
};

}  // namespace daqloom::ethernet

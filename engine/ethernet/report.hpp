// What an Ethernet has counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct LinkReport {
    std::uint64_t frames = 0;
    std::uint64_t ack_frames = 0;
    base::Bytes wire_bytes = 0;
    base::BitRate rate;
    std::uint64_t drops = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using OfLink = LinkReport;
        see("frames", &OfLink::frames, "Frames delivered.");
        see("ack_frames", &OfLink::ack_frames, "Frames among them without payload.");
        see("wire_bytes", &OfLink::wire_bytes,
            "Bytes of wire that these frames took, preambles and gaps included.");
        see("rate", &OfLink::rate, "Rate of the link, at the end.");
        see("drops", &OfLink::drops, "Frames dropped in front of the link.");
    }
};

/// Of the frames of one class that a link was given, where its port tells classes apart.
struct ClassReport {
    LinkIndex link;
    TrafficClass traffic_class;
    std::uint64_t frames = 0;
    base::Bytes wire_bytes = 0;
    std::uint64_t drops = 0;

    [[nodiscard]] bool is_empty() const { return frames == 0 && drops == 0; }
    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using OfClass = ClassReport;
        see("link", &OfClass::link, "The link.");
        see("traffic_class", &OfClass::traffic_class, "The class.");
        see("frames", &OfClass::frames, "Frames sent.");
        see("wire_bytes", &OfClass::wire_bytes,
            "Bytes of wire that these frames took, preambles and gaps included.");
        see("drops", &OfClass::drops, "Frames dropped in front of the link.");
    }
};

struct SwitchReport {
    base::Bytes peak = 0;
    base::Time peak_at;
    base::Bytes needed = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using Switch = SwitchReport;
        see("peak_bytes", &Switch::peak, "Most bytes in each switch at a time.");
        see("peak_at", &Switch::peak_at, "When that was reached first.");
        see("needed_bytes", &Switch::needed,
            "The smallest shared memory that would have admitted the same frames; 0 of a switch "
            "without shared memory.");
    }
};

/// Since counting began.
struct Report {
    std::uint64_t drops = 0;
    std::uint64_t injected_losses = 0;
    std::uint64_t cut = 0;
    std::uint64_t marks = 0;
    std::vector<LinkReport> links;
    std::vector<ClassReport> classes;  ///< that had frames, if there were several
    std::vector<SwitchReport> switches;

    /// Calls see(name, member, meaning) for each field but links, classes and switches.
    template <class See>
    static void each(See see) {
        see("drops", &Report::drops, "Frames dropped by switches.");
        see("injected_losses", &Report::injected_losses, "Frames lost as configured.");
        see("cut", &Report::cut, "Frames lost on the wire of a link that went down.");
        see("marks", &Report::marks, "Frames marked for congestion (ECN).");
    }
};

}  // namespace daqloom::ethernet

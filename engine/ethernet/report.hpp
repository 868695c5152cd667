// What an Ethernet has counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"

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
        see("rate", &OfLink::rate, "Rate of the link.");
        see("drops", &OfLink::drops, "Frames dropped in front of the link.");
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
    std::uint64_t marks = 0;
    std::vector<LinkReport> links;
    std::vector<SwitchReport> switches;

    /// Calls see(name, member, meaning) for each field but links and switches.
    template <class See>
    static void each(See see) {
        see("drops", &Report::drops, "Frames dropped by switches.");
        see("injected_losses", &Report::injected_losses, "Frames lost as configured.");
        see("marks", &Report::marks, "Frames marked for congestion (ECN).");
    }
};

}  // namespace daqloom::ethernet

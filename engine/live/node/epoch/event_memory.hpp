// The layout of MFPs and MEPs in the memory of a builder unit that requests fragments of several
// events at a time.
//
//     | header | place of readout unit 0 | … | place of readout unit n − 1 |   an event, for each
//     slot
#pragma once

#include <cstdint>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep_layout.hpp"
#include "protocol/units/requested_unit.hpp"

namespace daqloom::live {

/// Sizes are multiples of a cache line.
struct EventMemory {
    base::Bytes header = 0;     ///< bytes of a MEP's header
    base::Bytes place = 0;      ///< room of an MFP
    base::Bytes alignment = 1;  ///< every event starts at a multiple of it
    std::uint32_t readouts = 1;
    std::uint32_t slots = 1;  ///< events at a time

    struct Units {
        std::uint32_t readouts = 1;
        std::uint32_t builders = 1;
        std::uint32_t readouts_in_run = 1;  ///< number in a MEP's table
    };
    /// The layout for the largest MFPs of the configuration. Fails with one sentence if buffers are
    /// too small for the events collected at a time, or if there are too many slots to number.
    template <class Unit>
    static base::expected<EventMemory> of(const NodeConfig& config, const Units& units) {
        return of(config, units, Unit::slots(config), Unit::words, Unit::has_arrivals);
    }

    [[nodiscard]] base::Bytes event_bytes() const { return header + place * readouts; }
    /// Distance from one event to the next.
    [[nodiscard]] base::Bytes stride() const { return protocol::aligned(event_bytes(), alignment); }
    [[nodiscard]] base::Bytes bytes() const { return stride() * slots; }

    [[nodiscard]] base::Bytes event_at(std::uint32_t slot) const { return stride() * slot; }
    [[nodiscard]] base::Bytes mfp_at(std::uint32_t slot, protocol::ReadoutIndex readout) const {
        return event_at(slot) + header + place * readout.value();
    }
    /// The slot of the event that contains this byte.
    [[nodiscard]] std::uint32_t slot_at(base::Bytes offset) const {
        return static_cast<std::uint32_t>(offset / stride());
    }

  private:
    /// `has_sizes`: the rules contain event sizes; false: the configuration has fragment sizes.
    static base::expected<EventMemory> of(const NodeConfig& config, const Units& units,
                                          std::uint32_t slots,
                                          const protocol::RequestedWords& words, bool has_sizes);
};

}  // namespace daqloom::live

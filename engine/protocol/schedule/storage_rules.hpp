// The rules of storage, the stage after event building: which events are stored, and where.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

struct StorageRules {
    DAQLOOM_FIELDS(StorageRules,
                   (std::uint32_t, units, "Number of storage units; 0: no event is stored."),
                   (double, accepted, "Share of the events that are accepted and stored.", 0.01),
                   (base::Time, timeout,
                    "Time without an acknowledgement after which an event goes to the next storage "
                    "unit.",
                    base::seconds(1)))

    /// Whether an event of the run is accepted: drawn by its number and the seed of the run alone,
    /// so that each method and each builder unit accepts the same events.
    [[nodiscard]] constexpr bool accepts(EventId event, std::uint64_t seed) const {
        const std::uint64_t place = (static_cast<std::uint64_t>(event) + 1) * 0x9e3779b97f4a7c15U;
        const std::uint64_t drawn = base::mixed(base::mixed(seed) + place);
        return units > 0 && static_cast<double>(drawn >> 11) * 0x1p-53 < accepted;
    }
    /// Storage unit of an event at its `attempt`, from 0: in turn by event number.
    [[nodiscard]] constexpr StorageIndex unit_of(EventId event, std::uint32_t attempt) const {
        return StorageIndex((static_cast<std::uint64_t>(event) + attempt) % units);
    }
};

}  // namespace daqloom::protocol

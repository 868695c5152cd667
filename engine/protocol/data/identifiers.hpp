// Identifiers of events, units and streams.
#pragma once

#include <cstdint>

#include "base/index.hpp"

namespace daqloom::protocol {

/// A collision whose fragments belong together.
enum class EventId : std::uint64_t {};

/// A builder unit, 0 … builders − 1.
using BuilderIndex = base::Index<struct BuilderTag>;

/// A readout unit, 0 … readouts − 1. It sends the fragments of one or more streams.
using ReadoutIndex = base::Index<struct ReadoutTag>;

/// A storage unit, 0 … storage units − 1, which stores accepted events.
using StorageIndex = base::Index<struct StorageTag>;

/// A stream of a readout unit, counted within this readout unit.
using StreamIndex = base::Index<struct StreamTag>;

/// A unit of a run, 0 … units − 1: the process of a node, with its readout unit, its builder unit
/// or both.
using UnitIndex = base::Index<struct UnitTag>;

/// A multi-event packet (MEP): the MFPs with this number from all streams of all readout units.
enum class MepId : std::uint64_t {};

}  // namespace daqloom::protocol

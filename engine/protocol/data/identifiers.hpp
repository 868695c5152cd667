// Identifiers of events, units and sources.
#pragma once

#include <cstdint>

namespace daqloom::protocol {

/// A collision whose fragments belong together.
enum class EventId : std::uint64_t {};

/// 0 … builders − 1.
using BuilderIndex = std::uint32_t;

/// A readout unit, 0 … sources − 1.
using SourceIndex = std::uint32_t;

/// Where events travel in packets: a readout unit, 0 … readouts − 1, holds several streams, and
/// each of these is a source of multi-fragment packets (MFPs), numbered 0, 1, … in the unit.
using ReadoutIndex = std::uint32_t;
using StreamIndex = std::uint32_t;

/// A multi-event packet: the MFPs of all streams of all readout units with this number.
enum class MepId : std::uint64_t {};

}  // namespace daqloom::protocol

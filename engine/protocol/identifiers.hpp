// Who is who in event building.
#pragma once

#include <cstdint>

namespace daqloom::protocol {

/// A collision whose fragments belong together.
enum class EventId : std::uint64_t {};

/// 0 … builders − 1.
using BuilderIndex = std::uint32_t;

/// A readout unit, 0 … sources − 1.
using SourceIndex = std::uint32_t;

}  // namespace daqloom::protocol

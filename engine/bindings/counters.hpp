// Counters of a unit, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <string>

#include "protocol/run/accounts/named_counters.hpp"
#include "protocol/run/accounts/tally.hpp"

namespace daqloom::bindings {

/// A reading of a unit's counters: by name, and in Python also by an attribute for each counter of
/// the engine. Times that the engine counts in picoseconds (`_ps`) are in seconds (`_s`).
using Counters = protocol::NamedCounters;

using SeeCounter = std::function<void(const std::string& name, std::uint64_t value)>;

/// A reading of all counters that `each` visits.
Counters counted(const std::function<void(const SeeCounter& see)>& each);

/// The names of all gauges.
protocol::Gauges gauges();

void bind_counters(nanobind::module_& module);

}  // namespace daqloom::bindings

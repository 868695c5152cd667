// Counters of a unit, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <string>

#include "protocol/run/accounts/named_counters.hpp"
#include "protocol/run/accounts/tally.hpp"

namespace daqloom::bindings {

/// A reading of a unit's counters: by name, for messages and sums, and by an attribute for each
/// counter of the engine. Times, counted in picoseconds (`_ps`), are in seconds (`_s`).
struct Counters {
    nanobind::dict by_name;
};

using SeeCounter = std::function<void(const std::string& name, std::uint64_t value)>;

/// A reading of the counters for which each(see) calls see(name, value).
Counters counted(const std::function<void(const SeeCounter& see)>& each);

/// Conversion to and from the counters of the run control. Integers are at most 2^63 − 1.
protocol::NamedCounters named(const Counters& counters);
Counters counters_of(const protocol::NamedCounters& named);

/// The names of all gauges.
protocol::Gauges gauges();

void bind_counters(nanobind::module_& module);

}  // namespace daqloom::bindings

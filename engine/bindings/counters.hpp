// What a unit has counted, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <string>

#include "protocol/run/named_counters.hpp"
#include "protocol/run/tally.hpp"

namespace daqloom::bindings {

/// A reading of a unit's counters: by name, as messages carry them and sums are made, and by an
/// attribute for each one that the engine knows. Times, which are counted in picoseconds (`_ps`),
/// are seconds (`_s`).
struct Counters {
    nanobind::dict by_name;
};

using SeeCounter = std::function<void(const std::string& name, std::uint64_t value)>;

/// A reading of what each(see) calls see(name, value) for.
Counters counted(const std::function<void(const SeeCounter& see)>& each);

/// As the run control takes them, and back. Whole numbers are 2^63 − 1 at most.
protocol::NamedCounters named(const Counters& counters);
Counters counters_of(const protocol::NamedCounters& named);

/// The names of all gauges.
protocol::Gauges gauges();

void bind_counters(nanobind::module_& module);

}  // namespace daqloom::bindings

// What a unit has counted, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <string>

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

void bind_counters(nanobind::module_& module);

}  // namespace daqloom::bindings

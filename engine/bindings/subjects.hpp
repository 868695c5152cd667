// Registration of the parts of the Python module: each file registers its own part.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

namespace daqloom::bindings {

/// Adds classes and functions to the module.
using Bind = void (*)(nanobind::module_& module);

inline std::vector<Bind>& subjects() {
    static std::vector<Bind> all;
    return all;
}

/// Registers the bind function of a file, in any order: `const Subject flows(bind_flows);`.
struct Subject {
    explicit Subject(Bind bind) { subjects().push_back(bind); }
};

/// Binds the base classes of the simulated systems. Called before all other bind functions.
void bind_simulated(nanobind::module_& module);

}  // namespace daqloom::bindings

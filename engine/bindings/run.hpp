// A run in slices, between which Python handles signals.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/units.hpp"

namespace daqloom::bindings {

using Progress = std::function<void(double)>;

/// Simulates to the end. Holds the interpreter lock only between slices of about a tenth of a
/// second: there it checks for Ctrl-C, after which the system is in the state after its last slice,
/// and reports its progress in virtual seconds.
template <class System>
void run_in_slices(System& system, const Progress& progress) {
    const nanobind::gil_scoped_release unlocked;
    base::Time slice = base::nanoseconds(100);  // hosts by the hundred take a second for 10 us
    while (system.now() < system.config().duration) {
        const auto before = std::chrono::steady_clock::now();
        system.run(std::min(system.now() + slice, system.config().duration));
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
        slice = took.count() < 0.05 ? slice * 2 : took.count() > 0.2 ? slice / 2 : slice;
        const nanobind::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) {
            throw nanobind::python_error();
        }
        if (progress) {
            progress(system.now().seconds());
        }
    }
}

}  // namespace daqloom::bindings

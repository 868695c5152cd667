// A run in slices, between which Python has its say.
#pragma once

#include <nanobind/nanobind.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/units.hpp"

namespace daqloom::bindings {

using Progress = std::function<void(double)>;

inline double thread_cpu_s() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Simulates to the end; processor seconds. Holds the interpreter lock only between slices of about
/// a tenth of a second, in which it looks for Ctrl-C and tells how far it is, in virtual seconds.
template <class System>
double run_in_slices(System& system, const Progress& progress) {
    const nanobind::gil_scoped_release unlocked;
    const double begun = thread_cpu_s();
    base::Time slice = base::microseconds(10);
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
    return thread_cpu_s() - begun;
}

}  // namespace daqloom::bindings

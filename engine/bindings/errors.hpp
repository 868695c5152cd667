// The engine's errors as Python's exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <type_traits>
#include <utility>

#include "base/expected.hpp"

namespace daqloom::bindings {

/// Raises ValueError for unusable input, OSError for a refusal of the system, RuntimeError for a
/// defect of the engine.
[[noreturn]] inline void raise(const base::Error& error) {
    switch (error.cause) {
        case base::Cause::input:
            PyErr_SetString(PyExc_ValueError, error.message.c_str());
            break;
        case base::Cause::system:
            PyErr_SetString(PyExc_OSError, error.message.c_str());
            break;
        case base::Cause::defect:
            PyErr_SetString(PyExc_RuntimeError, error.message.c_str());
            break;
    }
    throw nanobind::python_error();
}

/// Returns the value, or raises.
template <class T>
T value_of(base::expected<T>&& result) {
    if (!result) {
        raise(result.error());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

/// Makes a call without the interpreter lock. Returns its value, or raises its error.
template <class Call>
auto without_lock(const Call& call) {
    return value_of([&] {
        const nanobind::gil_scoped_release release;
        return call();
    }());
}

}  // namespace daqloom::bindings

// For tests and benchmarks: the value or the error of a function that may fail.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "base/expected.hpp"

namespace daqloom::base {

/// Value of an `expected`; an error is thrown with its sentence, so that the test fails.
template <class Value>
Value value_of(expected<Value> made) {
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    if constexpr (!std::is_void_v<Value>) {
        return std::move(*made);
    }
}

/// Sentence of a failure; empty: there is none.
template <class Value>
std::string message_of(const expected<Value>& made) {
    return made ? std::string() : made.error().message;
}

}  // namespace daqloom::base

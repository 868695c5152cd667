// For tests: failures, and parts of their sentences.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "base/expected_test.hpp"

namespace daqloom::base {

/// Whether `made` is an error, with a sentence that contains `words`.
template <class Value>
testing::AssertionResult fails_with(std::string_view words, const expected<Value>& made) {
    const std::string message = made ? "no failure" : made.error().message;
    return made || message.find(words) == std::string::npos
               ? testing::AssertionFailure() << '"' << message << "\" without \"" << words << '"'
               : testing::AssertionSuccess();
}

}  // namespace daqloom::base

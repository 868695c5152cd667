// For tests: records the outputs of a machine without I/O as lines of text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace daqloom::base {

/// One line an output.
using Outputs = std::vector<std::string>;

/// Number of an identifier or an index; any other value is returned unchanged.
template <class Value>
decltype(auto) in_words(Value&& value) {
    if constexpr (std::is_enum_v<std::remove_cvref_t<Value>>) {
        return static_cast<std::uint64_t>(value);
    } else if constexpr (requires { value.value(); }) {
        return value.value();
    } else {
        return std::forward<Value>(value);
    }
}
template <class Value, class Word = decltype(in_words(std::declval<Value>()))>
using InWords =
    std::conditional_t<std::is_lvalue_reference_v<Word>, Word, std::remove_cvref_t<Word>>;

/// Base for the scene of a test: a machine, and the consumer of the machine's outputs.
class Transcript {
  protected:
    template <class... Values>
    void say(fmt::format_string<InWords<Values>...> text, Values&&... values) {
        outputs_.push_back(fmt::format(text, in_words(std::forward<Values>(values))...));
    }
    /// Outputs since the last look.
    Outputs outputs() { return std::exchange(outputs_, {}); }
    /// Outputs of an input.
    template <class Input>
    Outputs after(Input input) {
        input();
        return outputs();
    }

  private:
    Outputs outputs_;
};

}  // namespace daqloom::base

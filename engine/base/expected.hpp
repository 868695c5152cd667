// expected<T>: a value or the one sentence that says why there is none.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace daqloom::base {

/// What went wrong, in one sentence fit for a person: what, where, what was expected, what to do.
struct Error {
    std::string message;
};

template <class T>
using expected = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string message) {
    return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace daqloom::base

// expected<T>: a value, or an error, which is a message of one sentence and the cause.
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <utility>

namespace daqloom::base {

enum class Cause {
    input,   ///< a value, file or combination from the caller that cannot be used
    system,  ///< a resource, device, file or process, of any machine, that refuses or fails
    defect,  ///< a violated invariant of this program
};

/// The message is one sentence: what failed, where, what was expected, what to do.
struct Error {
    std::string message;
    Cause cause = Cause::input;
};

template <class T>
using expected = tl::expected<T, Error>;

inline tl::unexpected<Error> failure(std::string message, Cause cause = Cause::input) {
    return tl::unexpected<Error>(Error{std::move(message), cause});
}
inline tl::unexpected<Error> system_failure(std::string message) {
    return failure(std::move(message), Cause::system);
}
inline tl::unexpected<Error> defect(std::string message) {
    return failure(std::move(message), Cause::defect);
}
/// An outcome whose error begins with its subject.
template <class T>
expected<T> about(const char* subject, expected<T> outcome) {
    if (!outcome) {
        outcome.error().message.insert(0, subject);
    }
    return outcome;
}

}  // namespace daqloom::base

/// Defines `name` as the value of an `expected` expression; returns an error to the caller.
#define DAQLOOM_TRY(name, ...)                                     \
    auto name##_or_error = (__VA_ARGS__);                          \
    if (!name##_or_error) {                                        \
        return tl::unexpected(std::move(name##_or_error).error()); \
    }                                                              \
    auto& name = *name##_or_error

/// DAQLOOM_TRY for an expected without a value.
#define DAQLOOM_CHECK(...)                                     \
    do {                                                       \
        if (auto outcome = (__VA_ARGS__); !outcome) {          \
            return tl::unexpected(std::move(outcome).error()); \
        }                                                      \
    } while (false)

/// Returns a failure to the caller if the condition holds; its sentence is formatted by fmt.
#define DAQLOOM_REFUSE_IF(condition, ...)                              \
    do {                                                               \
        if (condition) {                                               \
            return ::daqloom::base::failure(fmt::format(__VA_ARGS__)); \
        }                                                              \
    } while (false)

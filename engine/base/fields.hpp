// Structs with a list of their fields: each field is named once, with its type, its meaning and,
// unless it is zero, its default.
//
//     struct FlowReport {
//         DAQLOOM_FIELDS(FlowReport,
//                        (base::Time, window, "From the end of the warm-up on."),
//                        (std::uint64_t, messages, "Messages that have arrived."))
//     };
//     struct RetryConfig {
//         DAQLOOM_FIELDS(RetryConfig,
//                        (std::uint32_t, retry_count, "Timeouts in a row that are survived.", 7))
//     };
//
// The macro declares the fields; `fields()`, a tuple with a base::Field for each field; and
// `each(see)`, which calls see(name, member, meaning) for each field.
#pragma once

#include <tuple>
#include <type_traits>

#define DAQLOOM_FIELDS(Struct, ...)                                                             \
    DAQLOOM_FOR_EACH(DAQLOOM_DECLARE, __VA_ARGS__)                                              \
    template <class Of = Struct>                                                                \
    static auto fields() {                                                                      \
        return std::tuple{DAQLOOM_FOR_EACH(DAQLOOM_SHOW, __VA_ARGS__)};                         \
    }                                                                                           \
    template <class See>                                                                        \
    static void each(See see) {                                                                 \
        std::apply([&](auto... field) { (see(field.name, field.member, field.meaning), ...); }, \
                   fields());                                                                   \
    }
#define DAQLOOM_DECLARE(Type, name, meaning, ...) Type name{__VA_ARGS__};
#define DAQLOOM_SHOW(Type, name, meaning, ...) ::daqloom::base::Field{#name, &Of::name, meaning},

// ---- a loop, which the preprocessor lacks: rescans the rest of the list up to 40 times
#define DAQLOOM_FOR_EACH(macro, ...) DAQLOOM_LOOK(DAQLOOM_STEP(macro, __VA_ARGS__))
#define DAQLOOM_STEP(macro, first, ...) \
    macro first __VA_OPT__(DAQLOOM_NEXT_STEP DAQLOOM_NO_ARGUMENTS(macro, __VA_ARGS__))
#define DAQLOOM_NEXT_STEP() DAQLOOM_STEP
#define DAQLOOM_NO_ARGUMENTS ()
#define DAQLOOM_LOOK(...) DAQLOOM_LOOK_13(DAQLOOM_LOOK_13(DAQLOOM_LOOK_13(__VA_ARGS__)))
#define DAQLOOM_LOOK_13(...) DAQLOOM_LOOK_4(DAQLOOM_LOOK_4(DAQLOOM_LOOK_4(__VA_ARGS__)))
#define DAQLOOM_LOOK_4(...) DAQLOOM_LOOK_1(DAQLOOM_LOOK_1(DAQLOOM_LOOK_1(__VA_ARGS__)))
#define DAQLOOM_LOOK_1(...) __VA_ARGS__

namespace daqloom::base {

/// A field of a struct.
template <class Owner, class Value>
struct Field {
    const char* name;
    Value Owner::*member;
    const char* meaning;
};
template <class Owner, class Value>
Field(const char*, Value Owner::*, const char*) -> Field<Owner, Value>;

/// Difference between two readings of counters, field by field: `all` minus the earlier `before`.
template <class Fields>
[[nodiscard]] Fields since(Fields all, const Fields& before) {
    Fields::each([&](const char*, auto member, const char*) {
        auto& field = all.*member;
        field = static_cast<std::remove_reference_t<decltype(field)>>(field - before.*member);
    });
    return all;
}

/// Sum of two readings of counters, field by field.
template <class Fields>
[[nodiscard]] Fields together(Fields all, const Fields& more) {
    Fields::each([&](const char*, auto member, const char*) {
        auto& field = all.*member;
        field = static_cast<std::remove_reference_t<decltype(field)>>(field + more.*member);
    });
    return all;
}

}  // namespace daqloom::base

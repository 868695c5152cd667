// Configurations for Python, bound by the list of fields of each struct, like reports. Python
// constructs them by keywords, with defaults. Times are in seconds (`_s`), rates in bits per second
// (`_bps`).
#pragma once

#include <optional>
#include <tuple>
#include <utility>

#include "base/fields.hpp"
#include "bindings/casters.hpp"
#include "bindings/report.hpp"

namespace daqloom::bindings {

/// A field as an argument: empty for its default.
template <class Value>
struct ArgumentOf {
    using Type = std::optional<Value>;
};
template <class Value>
struct ArgumentOf<std::optional<Value>> {
    using Type = std::optional<Value>;
};

/// Adds a constructor with a keyword for each of these fields.
template <class Class, class... Owner, class... Value>
void bind_constructor(nanobind::class_<Class>& cls, base::Field<Owner, Value>... field) {
    const auto set = []<class Field>(Class& self, const Field& one, auto& argument) {
        if (argument) {
            self.*one.member = std::move(*argument);
        }
    };
    cls.def(
        "__init__",
        [=](Class* self, typename ArgumentOf<Value>::Type... argument) {
            new (self) Class();
            (set(*self, field, argument), ...);
        },
        nanobind::kw_only(),
        (nanobind::arg(name_in_python<Value>(field.name).c_str()) = nanobind::none())...);
}

/// Binds a class with the fields of `Config`, and of `Parts` from which `Config` derives.
template <class Config, class... Parts>
nanobind::class_<Config> bind_config(nanobind::module_& module, const char* name,
                                     const char* meaning) {
    nanobind::class_<Config> cls(module, name, meaning);
    std::apply([&](auto... field) { bind_constructor(cls, field...); },
               std::tuple_cat(Config::fields(), Parts::fields()...));
    const auto add = [&]<class Value, class Owner>(const char* field, Value Owner::*member,
                                                   const char* text) {
        cls.def_rw(name_in_python<Value>(field).c_str(), member, text);
    };
    Config::each(add);
    (Parts::each(add), ...);
    return cls;
}

/// A report that Python constructs.
template <class Record>
nanobind::class_<Record> bind_record(nanobind::module_& module, const char* name,
                                     const char* meaning) {
    auto cls = bind_report<Record>(module, name, meaning);
    std::apply([&](auto... field) { bind_constructor(cls, field...); }, Record::fields());
    return cls;
}

/// Binds a protocol's rules, a base class of the configuration, as an attribute.
template <class Rules, class Config>
void bind_rules(nanobind::class_<Config>& cls) {
    cls.def_prop_rw(
        Rules::name, [](Config& self) -> Rules& { return self; },
        [](Config& self, const Rules& rules) { static_cast<Rules&>(self) = rules; });
}

}  // namespace daqloom::bindings

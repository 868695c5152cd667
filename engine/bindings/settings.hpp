// Configurations for Python, bound by the list that each struct gives of its fields, as reports
// are. Attributes can be read and set; times are in seconds (`_s`), rates in bits per second
// (`_bps`).
#pragma once

#include "bindings/casters.hpp"
#include "bindings/report.hpp"

namespace daqloom::bindings {

/// Adds the fields of `Part` to a class that derives from it.
template <class Part, class Class, class... Base>
void bind_settings(nanobind::class_<Class, Base...>& cls) {
    Part::each(
        [&]<class Value, class Owner>(const char* name, Value Owner::*member, const char* meaning) {
            cls.def_rw(name_in_python<Value>(name).c_str(), member, meaning);
        });
}

/// A class with the fields of `Config`, constructed with their defaults.
template <class Config>
nanobind::class_<Config> bind_config(nanobind::module_& module, const char* name,
                                     const char* meaning) {
    nanobind::class_<Config> cls(module, name, meaning);
    cls.def(nanobind::init<>());
    bind_settings<Config>(cls);
    return cls;
}

}  // namespace daqloom::bindings

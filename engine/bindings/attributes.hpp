// Attributes of the engine's plain structs, seen from Python in SI units.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::bindings {

/// An attribute of type Time, seen from Python as seconds.
template <class Class, class Owner, class... Base>
void seconds(nanobind::class_<Class, Base...>& cls, const char* name, base::Time Owner::*member) {
    cls.def_prop_rw(
        name, [member](const Class& self) { return (self.*member).seconds(); },
        [member](Class& self, double s) { self.*member = base::Time::from_seconds(s); });
}

/// An attribute of type BitRate, seen from Python as bits per second.
template <class Class, class Owner, class... Base>
void bits_per_second(nanobind::class_<Class, Base...>& cls, const char* name,
                     base::BitRate Owner::*member) {
    cls.def_prop_rw(
        name, [member](const Class& self) { return (self.*member).bps; },
        [member](Class& self, std::int64_t bps) { self.*member = {bps}; });
}

}  // namespace daqloom::bindings

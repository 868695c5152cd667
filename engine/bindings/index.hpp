// Indices of the engine, which Python sees as plain numbers.
#pragma once

#include <nanobind/nanobind.h>

#include "base/index.hpp"

namespace nanobind::detail {

template <class Tag, class Number>
struct type_caster<daqloom::base::Index<Tag, Number>> {
    using Index = daqloom::base::Index<Tag, Number>;
    NB_TYPE_CASTER(Index, const_name("int"))

    bool from_python(handle object, uint8_t flags, cleanup_list* cleanup) noexcept {
        make_caster<Number> number;
        if (!number.from_python(object, flags, cleanup)) {
            return false;
        }
        value = Index(number.value);
        return true;
    }
    static handle from_cpp(Index index, rv_policy policy, cleanup_list* cleanup) noexcept {
        return make_caster<Number>::from_cpp(index.value(), policy, cleanup);
    }
};

}  // namespace nanobind::detail

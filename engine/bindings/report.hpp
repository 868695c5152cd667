// Reports for Python, bound by the list of fields of each struct: its `each` calls see(name,
// member, meaning). A report is a class of read-only attributes; a list of rows is one numpy array
// per field. Times are floats in seconds (`_s`), rates in bits per second (`_bps`).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "bindings/casters.hpp"

namespace daqloom::bindings {

/// Rows that become columns in Python. Two dimensions: a table of `width` columns, row by row.
template <class Row, std::size_t dimensions = 1>
struct Columns {
    std::vector<Row> rows;
    std::size_t width = 1;
};

/// Item of a column.
template <class Value>
auto item_of(const Value& value) {
    if constexpr (is_index<Value>) {
        return value.value();  // keeps the type of the index
    } else if constexpr (requires { python_value(value); }) {
        return python_value(value);
    } else if constexpr (std::is_enum_v<Value>) {
        return static_cast<std::underlying_type_t<Value>>(value);
    } else {
        return value;
    }
}

/// Python name of a field, with the unit as suffix.
template <class Value>
std::string name_in_python(const char* name) {
    constexpr bool is_time =
        std::is_same_v<Value, base::Time> || std::is_same_v<Value, std::vector<base::Time>>;
    constexpr bool is_rate = std::is_same_v<Value, base::BitRate>;
    return std::string(name) + (is_time ? "_s" : is_rate ? "_bps" : "");
}

/// Adds the fields of `Part`, which is the class itself or a base class of it.
template <class Part, class Class, class... Base>
void bind_fields(nanobind::class_<Class, Base...>& cls) {
    Part::each(
        [&]<class Value, class Owner>(const char* name, Value Owner::*member, const char* meaning) {
            cls.def_ro(name_in_python<Value>(name).c_str(), member, meaning);
        });
}

/// A class with the fields of `Report`.
template <class Report, class... Base>
nanobind::class_<Report, Base...> bind_report(nanobind::module_& module, const char* name,
                                              const char* meaning) {
    nanobind::class_<Report, Base...> cls(module, name, meaning);
    bind_fields<Report>(cls);
    return cls;
}

/// A new array with one field of all rows.
template <class Row, std::size_t dimensions, class Value, class Owner>
auto column(const Columns<Row, dimensions>& columns, Value Owner::*member) {
    using Item = decltype(item_of(std::declval<const Value&>()));
    const std::size_t size = columns.rows.size();
    auto items = std::make_unique_for_overwrite<Item[]>(size);
    for (std::size_t i = 0; i < size; ++i) {
        items[i] = item_of(columns.rows[i].*member);
    }
    std::array<std::size_t, dimensions> shape{size};
    if constexpr (dimensions == 2) {
        shape = {size / columns.width, columns.width};
    }
    Item* const data = items.get();
    const nanobind::capsule owner(items.release(),
                                  [](void* all) noexcept { delete[] static_cast<Item*>(all); });
    return nanobind::ndarray<nanobind::numpy, Item, nanobind::ndim<dimensions>>(
        data, dimensions, shape.data(), owner);
}

/// Binds a class with a column for each field of `Row`; it derives from Columns<Row, dimensions>.
template <class Row, std::size_t dimensions = 1, class Class = Columns<Row, dimensions>>
nanobind::class_<Class> bind_columns(nanobind::module_& module, const char* columns,
                                     const char* of_all) {
    nanobind::class_<Class> cls(module, columns, of_all);
    Row::each(
        [&]<class Value, class Owner>(const char* name, Value Owner::*member, const char* meaning) {
            cls.def_prop_ro(
                name_in_python<Value>(name).c_str(),
                [member](const Class& self) { return column<Row, dimensions>(self, member); },
                nanobind::rv_policy::automatic, meaning);
        });
    return cls;
}

}  // namespace daqloom::bindings

// Type casters for types of the standard library and small types of the engine. In Python a time is
// a float (s), a rate a number (bits per second), an index a number from 0 (-1 for none), an entry
// of a table a tuple, and a table of routes an array.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"
#include "network/graph.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/run/accounts/ledger.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/schedule/lhc_trigger.hpp"
#include "softswitch/headers.hpp"

namespace daqloom::bindings {

template <class Value>
inline constexpr bool is_index = false;
template <class Tag, class Number>
inline constexpr bool is_index<base::Index<Tag, Number>> = true;

/// Python representation of a value.
inline double python_value(base::Time time) { return time.seconds(); }
inline std::int64_t python_value(base::BitRate rate) { return rate.bps; }
template <class Tag, class Number>
std::int64_t python_value(base::Index<Tag, Number> index) {
    return index == index.none() ? -1 : std::int64_t{index.value()};
}
inline auto python_value(network::End end) { return std::tuple(end.node, end.port); }
inline auto python_value(const network::Cable& cable) {
    return std::tuple(cable.a, cable.b, cable.rate, cable.delay);
}
inline auto python_value(const network::PortGroup& group) {
    return std::tuple(group.node, group.ports);
}
inline auto python_value(const network::Forwarding& routes) {
    using Routes = nanobind::ndarray<nanobind::numpy, const network::Route, nanobind::ndim<1>,
                                     nanobind::c_contig, nanobind::device::cpu>;
    return Routes(routes.data(), {routes.size()});
}
inline auto python_value(const infiniband::LaneWeight& entry) {
    return std::tuple(entry.lane, entry.weight);
}
inline auto python_value(const protocol::LeakyBucket& bucket) {
    return std::tuple(bucket.triggers, bucket.window_bx);
}
inline auto python_value(const protocol::EventSizeConfig::Bin& bin) {
    return std::tuple(bin.lower, bin.upper, bin.weight);
}
inline auto python_value(const protocol::RoleHolders& moved) {
    return std::tuple(moved.unit, moved.readout, moved.builder);
}
inline auto python_value(const protocol::MepCounts& meps) {
    return std::tuple(meps.finished, meps.begun);
}
inline auto python_value(const protocol::orders::Member& member) {
    return std::tuple(member.unit, member.address);
}
inline std::uint64_t python_value(softswitch::MacAddress address) { return address.value; }
inline auto python_value(softswitch::IpAddress address) {
    return std::tuple(address.high, address.low);
}
template <class Value>
using PythonValue = decltype(python_value(std::declval<const Value&>()));

/// Converts from the Python representation; false if the value is out of range.
template <class Value>
bool assign(const PythonValue<Value>& source, Value& value) {
    if constexpr (is_index<Value>) {
        if (source != -1 && !std::in_range<typename Value::number_type>(source)) {
            return false;
        }
        value = source == -1 ? Value::none() : Value(source);
    } else if constexpr (std::is_same_v<Value, base::Time>) {
        value = base::Time::from_seconds(source);
    } else if constexpr (std::is_integral_v<PythonValue<Value>>) {
        value = {source};
    } else if constexpr (std::is_same_v<Value, network::Forwarding>) {
        value.assign(source.data(), source.data() + source.size());
    } else {
        value = std::make_from_tuple<Value>(source);
    }
    return true;
}

}  // namespace daqloom::bindings

namespace nanobind::detail {

template <>
struct type_caster<std::vector<std::byte>> {
    NB_TYPE_CASTER(std::vector<std::byte>, const_name("bytes"))

    bool from_python(handle object, uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
        if (!isinstance<bytes>(object)) {
            return false;
        }
        const auto source = borrow<bytes>(object);
        const auto* const data = static_cast<const std::byte*>(source.data());
        value.assign(data, data + source.size());
        return true;
    }
    static handle from_cpp(const std::vector<std::byte>& value, rv_policy /*policy*/,
                           cleanup_list* /*cleanup*/) noexcept {
        return bytes(value.data(), value.size()).release();
    }
};

template <class Of>
    requires requires(const Of& value) { daqloom::bindings::python_value(value); }
struct type_caster<Of> {
    using PythonValue = daqloom::bindings::PythonValue<Of>;
    using Caster = make_caster<PythonValue>;
    NB_TYPE_CASTER(Of, Caster::Name)

    bool from_python(handle object, uint8_t flags, cleanup_list* cleanup) noexcept {
        Caster source;
        return source.from_python(object, flags, cleanup) &&
               daqloom::bindings::assign(source.operator cast_t<PythonValue>(), value);
    }
    static handle from_cpp(const Of& value, rv_policy policy, cleanup_list* cleanup) noexcept {
        return Caster::from_cpp(daqloom::bindings::python_value(value), policy, cleanup);
    }
};

}  // namespace nanobind::detail

#include "bindings/counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "bindings/casters.hpp"
#include "bindings/report.hpp"
#include "live/memory/counters.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
namespace counter_names = live::counter_names;
using live::CounterName, live::NodeCounters, live::TransportCounters;
using CounterValue = Counters::Value;

namespace {

/// Prefixes in the list of counters, which are attributes.
constexpr std::array kListed = {counter_names::kWrong,        counter_names::kNotWritten,
                                counter_names::kConsumerMeps, counter_names::kConsumerReturned,
                                counter_names::kSamplerMeps,  counter_names::kSamplerSkipped};
constexpr std::array kRefusals = {counter_names::kRefused, counter_names::kTransportRefused};

bool is_time(std::string_view name) { return name.ends_with("_ps"); }

std::string name_in_python(std::string name) {
    return is_time(name) ? name.substr(0, name.size() - 2) + "s" : name;
}

/// Name and meaning of a counter.
struct KnownCounter {
    DAQLOOM_FIELDS(KnownCounter,
                   (std::string, name, "Name in `Counters.by_name`; * stands for any cause."),
                   (std::string, meaning, "Meaning of the counter."),
                   (bool, is_gauge, "Whether it is a gauge, of which readings are not summed."))
};

/// Calls see(counter, attribute, whether it is a time) for all counters with one name each.
template <class See>
void each_known(See see) {
    const auto all_of = [&]<class Of>(const std::string& prefix, const std::string& of_attributes) {
        Of::each(
            [&]<class Owner, class Kind>(const char* name, Kind Owner::*, const char* meaning) {
                see(KnownCounter{name_in_python(prefix + name), meaning,
                                 std::is_same_v<Kind, live::Gauge>},
                    name_in_python(of_attributes + name), is_time(name));
            });
    };
    all_of.template operator()<NodeCounters>("", "");
    all_of.template operator()<TransportCounters>(counter_names::kTransport, "transport_");
    for (const CounterName& single : counter_names::kSingle) {
        const std::string name = name_in_python(single.name);
        see(KnownCounter{name, single.meaning, single.is_gauge}, name, is_time(single.name));
    }
}

std::vector<KnownCounter> known_counters() {
    std::vector<KnownCounter> all;
    each_known(
        [&](KnownCounter known, const std::string&, bool) { all.push_back(std::move(known)); });
    for (const CounterName& cause : kListed) {
        all.push_back({fmt::format("{}*", cause.name), cause.meaning});
    }
    std::ranges::sort(all, {}, &KnownCounter::name);
    return all;
}

/// Binds a counter as an attribute; None if the unit does not have this counter.
template <class Number>
void bind_number(nb::class_<Counters>& cls, const std::string& attribute, const KnownCounter& known,
                 Number (Counters::*read)(std::string_view name) const) {
    cls.def_prop_ro(
        attribute.c_str(),
        [read, name = known.name](const Counters& self) {
            return self.by_name.contains(name) ? std::optional((self.*read)(name)) : std::nullopt;
        },
        known.meaning.c_str());
}

void bind_causes(nb::class_<Counters>& cls, const char* attribute, const CounterName& cause) {
    cls.def_prop_ro(
        attribute,
        [prefix = std::string(cause.name)](const Counters& self) {
            std::map<std::string, std::int64_t> found;
            for (const auto& [name, _] : self.by_name) {
                if (name.starts_with(prefix)) {
                    found[name.substr(prefix.size())] = self.count(name);
                }
            }
            return found;
        },
        cause.meaning);
}

/// The bucket's number, from the name of a histogram's counter; none: a counter of another name.
std::optional<std::size_t> bucket_of(std::string_view histogram, std::string_view name) {
    const std::string_view between = counter_names::kBucket;
    if (!name.starts_with(histogram) || !name.substr(histogram.size()).starts_with(between)) {
        return std::nullopt;
    }
    const std::string_view digits = name.substr(histogram.size() + between.size());
    std::size_t bucket = live::LatencyHistogram::Buckets::count;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), bucket);
    const bool is_one = error == std::errc() && end == digits.end() &&
                        bucket < live::LatencyHistogram::Buckets::count;
    return is_one ? std::optional(bucket) : std::nullopt;
}

void bind_histogram(nb::class_<Counters>& cls, const char* histogram, const char* meaning) {
    cls.def_prop_ro(
        histogram,
        [histogram](const Counters& self) {
            std::map<std::size_t, std::int64_t> counts;
            for (const auto& [name, _] : self.by_name) {
                const auto bucket = bucket_of(histogram, name);
                if (bucket && self.count(name) > 0) {
                    counts.emplace(*bucket, self.count(name));
                }
            }
            return counts;
        },
        fmt::format(
            "{} Counts by number of the bucket, see latency_bucket: above 0, in ascending order.",
            meaning)
            .c_str());
}

/// Counters by name, without those of histograms and, if `causes`, without those per cause.
std::map<std::string, CounterValue> without(const Counters& all, bool causes) {
    std::map<std::string, CounterValue> found;
    for (const auto& [name, value] : all.by_name) {
        const auto begins = [&](const CounterName& cause) { return name.starts_with(cause.name); };
        const bool is_cause =
            std::ranges::any_of(kListed, begins) || std::ranges::any_of(kRefusals, begins);
        if (name.find(counter_names::kBucket) == std::string::npos && !(causes && is_cause)) {
            found.emplace(name, value);
        }
    }
    return found;
}

/// A counter from Python. Integers are at most 2^63 − 1.
CounterValue value_of_counter(nb::handle number) {
    if (nb::isinstance<nb::float_>(number)) {
        return nb::cast<double>(number);
    }
    int too_large = 0;
    const std::int64_t whole = PyLong_AsLongLongAndOverflow(number.ptr(), &too_large);
    if (whole == -1 && PyErr_Occurred() != nullptr) {
        throw nb::python_error();
    }
    using Limits = std::numeric_limits<std::int64_t>;
    return too_large == 0 ? whole : too_large > 0 ? Limits::max() : Limits::min();
}

/// Lowest value and width of a bucket, in seconds.
std::pair<double, double> latency_bucket(std::size_t bucket) {
    using Latencies = live::LatencyHistogram::Buckets;
    if (bucket >= Latencies::count) {
        throw nb::value_error(
            fmt::format("latency bucket {}; there are {}", bucket, Latencies::count).c_str());
    }
    return {static_cast<double>(Latencies::lowest(bucket)) * 1e-12,
            static_cast<double>(Latencies::width(bucket)) * 1e-12};
}

}  // namespace

Counters counted(const std::function<void(const SeeCounter& see)>& each) {
    Counters all;
    each([&](const std::string& name, std::uint64_t value) {
        all.by_name[name_in_python(name)] = is_time(name)
                                                ? CounterValue(static_cast<double>(value) * 1e-12)
                                                : CounterValue(static_cast<std::int64_t>(value));
    });
    return all;
}

protocol::Gauges gauges() {
    protocol::Gauges names;
    for (const KnownCounter& known : known_counters()) {
        if (known.is_gauge) {
            names.insert(known.name);
        }
    }
    return names;
}

void bind_counters(nb::module_& module) {
    nb::class_<Counters> cls(
        module, "Counters",
        "A reading of a unit's counters. An attribute is None where the unit does not count it.");
    using ByName = nb::typed<nb::dict, std::string, CounterValue>;
    cls.def(
        "__init__",
        [](Counters* self, const ByName& by_name) {
            new (self) Counters;
            for (const auto& [name, value] : by_name) {
                self->by_name[nb::cast<std::string>(name)] = value_of_counter(value);
            }
        },
        nb::arg("by_name") = nb::dict());
    nb::implicitly_convertible<nb::dict, Counters>();
    cls.def_ro("by_name", &Counters::by_name, "All counters by name, as in messages.");
    cls.def_prop_ro(
        "numbers", [](const Counters& self) { return without(self, false); },
        "Counters by name, without histograms.");
    cls.def_prop_ro(
        "plain", [](const Counters& self) { return without(self, true); },
        "Counters by name, without histograms and causes.");
    each_known([&](const KnownCounter& known, const std::string& attribute, bool is_time) {
        if (is_time) {
            bind_number(cls, attribute, known, &Counters::number);
        } else {
            bind_number(cls, attribute, known, &Counters::count);
        }
    });
    for (const CounterName& cause : kListed) {
        const std::string prefix = cause.name;
        bind_causes(cls, prefix.substr(0, prefix.size() - 1).c_str(), cause);
    }
    cls.def_prop_ro("causes_of_loss", &Counters::causes_of_loss,
                    "Causes of packets not written, such as \"No space left on device\".");
    bind_causes(cls, "refused", counter_names::kRefused);
    bind_causes(cls, "transport_refused", counter_names::kTransportRefused);
    live::UnitHistograms::each(
        [&](const char* name, auto, const char* meaning) { bind_histogram(cls, name, meaning); });
    bind_report<KnownCounter>(module, "KnownCounter", "Name and meaning of a counter.");
    module.def("known_counters", &known_counters, "All counters that a unit can have.");
    module.def("latency_bucket", &latency_bucket, nb::arg("bucket"),
               "A bucket of a unit's latency histograms: its lowest value and its width (s).");
}

}  // namespace daqloom::bindings

// The Python module daqloom._switch: the software switch over DPDK's devices. It is a separate
// module, because it is built only where DPDK is installed; the rest of daqloom works without it.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
#include "softswitch/io/dpdk_switch.hpp"
#include "softswitch/io/dpdk_trial.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace softswitch;
using io::Switch;
using io::SwitchConfig;
using io::SwitchState;

namespace {

void bind_configurations(nb::module_& module) {
    bind_config<RingConfig>(module, "RingConfig", "A ring: its port, limits and pace.");
    bind_config<SharedMemoryConfig>(module, "SharedMemoryConfig",
                                    "Packet memory that all outputs share.");
    bind_config<OutputConfig>(module, "OutputConfig", "Rings of all outputs.");
    bind_config<MacTableConfig>(module, "AddressesConfig", "Table of addresses.");
    bind_config<PortLimits>(module, "PortLimits", "Limits of a port; 0: no limit.");
    bind_config<ForwarderConfig>(module, "ForwarderConfig", "Rings, rules and addresses.");
    bind_config<io::DevicesConfig>(module, "DevicesConfig", "Devices of the ports.");
    bind_config<SwitchConfig>(module, "SwitchConfig", "The process of a switch.");
}

void bind_matches(nb::module_& module) {
    bind_config<Match>(module, "Match",
                       "Required header fields of a frame; None matches any value.");
    nb::class_<Action>(module, "Action", "Action on the frames of a rule.")
        .def_static(
            "queue",
            [](RingIndex ring) { return Action{.what = Action::What::queue, .ring = ring}; },
            nb::arg("ring"))
        .def_static(
            "port", [](PortIndex port) { return Action{.what = Action::What::port, .port = port}; },
            nb::arg("port"))
        .def_static("forward", [] { return Action{.what = Action::What::forward}; })
        .def_static("flood", [] { return Action{.what = Action::What::flood}; })
        .def_static("drop", [] { return Action{.what = Action::What::drop}; });
}

void bind_state(nb::module_& module) {
    bind_report<RingCounters>(module, "RingCounters", "Counters of a ring, from the start on.");
    bind_report<PortCounters>(module, "PortCounters", "Counters of frames by their ingress port.");
    bind_report<io::LoopCounters>(module, "LoopCounters", "Counters of the poll loop.");
    bind_report<MacTableCounters>(module, "AddressCounters", "Counters of the table of addresses.");
    bind_report<io::DeviceCounters>(module, "DeviceCounters", "Counters of the device of a port.");
    bind_report<SwitchState::Port>(module, "PortState", "A port of the switch.");
    bind_report<SwitchState::Ring>(module, "RingState", "A ring of the switch.");
    bind_report<SwitchState>(module, "SwitchState",
                             "State and counters, each core read between two of its turns.");
}

void bind_trials(nb::module_& module) {
    using io::TrialConfig;
    using io::Trials;
    bind_config<TrialConfig>(module, "TrialConfig", "A switch between two wires.");
    bind_report<io::TrialResult>(module, "TrialResult", "Result of a trial.");
    nb::class_<Trials>(module, "Trials", "A switch between two wires, and a generator.")
        .def(nb::new_([](const TrialConfig& config) {
                 return without_lock([&] { return Trials::make(config); });
             }),
             nb::arg("config"))
        .def(
            "run",
            [](Trials& self, double frames_per_second, base::Time duration,
               base::Time change_every) {
                return without_lock(
                    [&] { return self.run(frames_per_second, duration, change_every); });
            },
            nb::arg("frames_per_second"), nb::arg("duration_s"),
            nb::arg("change_every_s") = base::Time::zero())
        .def("stop", &Trials::stop,
             "Ends the running trial with its results so far; callable from any thread.")
        .def(
            "turn_time_s",
            [](Trials& self, std::uint32_t frames, std::uint32_t turns, std::uint32_t among) {
                return without_lock([&] { return self.turn_time(frames, turns, among); });
            },
            nb::arg("frames"), nb::arg("turns"), nb::arg("among"),
            "Time of a turn in which `frames` (up to 32) enter and leave, on one core: the mean of "
            "the middle half of `turns` turns. Frames cycle through `among` buffers.");
}

/// Changes of the switch between two turns, in order. A step returns false if a table is full; the
/// later steps are then skipped.
struct Changes {
    using Step = std::function<bool(Forwarder&)>;

    template <class Do>
    void add(Do step) {
        steps.push_back([step = std::move(step)](Forwarder& to) {
            if constexpr (std::is_void_v<decltype(step(to))>) {
                step(to);
                return true;
            } else {
                return step(to);
            }
        });
    }
    /// Applies the first `first` steps; returns the number of the step that returned false, or -1.
    std::int64_t apply(Forwarder& to, std::size_t first) const {
        const auto end = steps.begin() + static_cast<std::ptrdiff_t>(first);
        const auto refused =
            std::find_if(steps.begin(), end, [&](const Step& step) { return !step(to); });
        return refused == end ? -1 : refused - steps.begin();
    }

    std::vector<Step> steps;
};

/// Wraps a change of the forwarder as a method that adds this change as a step.
template <class Result, class... Argument>
auto step(Result (*change)(Forwarder&, Argument...)) {
    return [change](Changes& self, std::decay_t<Argument>... argument) {
        self.add([=](Forwarder& to) { return change(to, argument...); });
    };
}

void bind_changes(nb::module_& module) {
    using namespace nb::literals;
    using To = Forwarder;
    const auto set_meter = [](To& to, MeterIndex index, bool is_of_packets,
                              std::uint64_t per_second, std::uint64_t burst) {
        const auto unit = is_of_packets ? MeterConfig::Unit::packets : MeterConfig::Unit::bits;
        return to.set_meter(index, {unit, per_second, burst});
    };
    const auto set_flow = [](To& to, FlowIndex index, const Match& match, std::uint16_t priority,
                             const Action& action, MeterIndex meter) {
        return to.set_flow(index, {match, priority, action, meter});
    };
    nb::class_<Changes>(module, "Changes",
                        "Changes to apply between two turns of the switch, step by step.")
        .def(nb::init<>())
        .def("__len__", [](const Changes& self) { return self.steps.size(); })
        .def("set_rate", step(+[](To& to, RingIndex ring, base::BitRate rate) {
                 to.queues().set_rate(ring, rate);
             }),
             "ring"_a, "rate_bps"_a)
        .def("set_limits",
             step(+[](To& to, RingIndex ring, std::uint32_t packets, base::Bytes bytes) {
                 to.queues().set_limits(ring, packets, bytes);
             }),
             "ring"_a, "packets"_a, "bytes"_a)
        .def("set_mark", step(+[](To& to, RingIndex ring, base::Bytes bytes) {
                 to.queues().set_mark(ring, bytes);
             }),
             "ring"_a, "bytes"_a)
        .def("set_port_limits", step(+[](To& to, PortIndex port, const PortLimits& limits) {
                 return to.set_limits(port, limits);
             }),
             "port"_a, "limits"_a, "Refused if there is no such port.")
        .def("forget_peaks", step(+[](To& to) { to.queues().forget_peaks(); }))
        .def("set_pause", step(+[](To& to, RingIndex ring, std::uint32_t packets) {
                 to.set_pause(ring, packets);
             }),
             "ring"_a, "packets"_a)
        .def("set_mirrored", step(+[](To& to, RingIndex ring, bool is_mirrored) {
                 to.set_mirrored(ring, is_mirrored);
             }),
             "ring"_a, "is_mirrored"_a)
        .def("set_rule",
             step(+[](To& to, const Match& match, std::uint16_t priority, const Action& action) {
                 return to.set_rule(match, priority, action);
             }),
             "match"_a, "priority"_a, "action"_a, "Refused if the table is full.")
        .def("remove_rule", step(+[](To& to, const Match& match, std::uint16_t priority) {
                 std::ignore = to.remove_rule(match, priority);
             }),
             "match"_a, "priority"_a)
        .def("set_flow", step(+set_flow), "index"_a, "match"_a, "priority"_a, "action"_a, "meter"_a,
             "Sets an entry of the flow table; meter -1: none. Refused for too many kinds of "
             "matches.")
        .def("remove_flow", step(+[](To& to, FlowIndex index) { to.remove_flow(index); }),
             "index"_a)
        .def("set_meter", step(+set_meter), "index"_a, "is_of_packets"_a, "per_second"_a, "burst"_a,
             "Configures a meter of bits or packets; resets its counters. Refused if there is no "
             "such meter.")
        .def("fix_address",
             step(+[](To& to, MacAddress address, std::uint16_t vlan, PortIndex port) {
                 return to.fix_address(address, vlan, port);
             }),
             "address"_a, "vlan"_a, "port"_a,
             "Fixes an address in a VLAN, or with EVERY_VLAN in each. Refused if it has no place.")
        .def("forget_address", step(+[](To& to, MacAddress address, std::uint16_t vlan) {
                 std::ignore = to.forget_address(address, vlan);
             }),
             "address"_a, "vlan"_a);
}

/// Counters summed over all cores for each index. `read` returns the counters of an index in one
/// core, which has indices below `many`; other indices count 0.
template <std::size_t numbers, class Index, class Many, class Read>
std::vector<std::array<std::uint64_t, numbers>> counted(Switch& self,
                                                        const std::vector<Index>& indices,
                                                        Many many, Read read) {
    std::vector<std::array<std::uint64_t, numbers>> all(indices.size());
    self.change([&](const Forwarder& core) {
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (indices[i].value() < many(core.flow_table())) {
                const std::array<std::uint64_t, numbers> its = read(core.flow_table(), indices[i]);
                std::ranges::transform(all[i], its, all[i].begin(), std::plus{});
            }
        }
    });
    return all;
}

void bind_switch(nb::module_& module) {
    nb::class_<Switch>(module, "Switch",
                       "The switch; at most one per process, as DPDK starts once.")
        .def(nb::new_([](const SwitchConfig& config) {
                 return without_lock([&] { return Switch::start(config); });
             }),
             nb::arg("config"))
        .def("open", &Switch::open, nb::call_guard<nb::gil_scoped_release>(),
             "Starts to receive frames; called when the rules are set.")
        .def("state", &Switch::state, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "apply",
            [](Switch& self, const Changes& changes) {
                std::int64_t refused = -1;
                self.change([&](Forwarder& to) {
                    const std::size_t first =
                        refused < 0 ? changes.steps.size() : static_cast<std::size_t>(refused);
                    refused = std::max(refused, changes.apply(to, first));
                });
                return refused;
            },
            nb::arg("changes"), nb::call_guard<nb::gil_scoped_release>(),
            "Applies all changes between the same two turns of a core, core by core. Returns the "
            "number of the refused change, before which all cores stopped, or -1.")
        .def(
            "flow_counts",
            [](Switch& self, const std::vector<FlowIndex>& indices) {
                return counted<2>(
                    self, indices, [](const FlowTable& table) { return table.most(); },
                    [](const FlowTable& table, FlowIndex index) {
                        const FlowTable::Counters& its = table.counters(index);
                        return std::array{its.packets, its.bytes};
                    });
            },
            nb::arg("indices"), nb::call_guard<nb::gil_scoped_release>(),
            "Packets and bytes that matched, for each of these entries of the flow table.")
        .def(
            "meter_counts",
            [](Switch& self, const std::vector<MeterIndex>& indices) {
                return counted<4>(
                    self, indices, [](const FlowTable& table) { return table.meters().size(); },
                    [](const FlowTable& table, MeterIndex index) {
                        const MeterCounters& its = table.meters().counters(index);
                        return std::array{its.packets, its.bytes, its.dropped, its.dropped_bytes};
                    });
            },
            nb::arg("indices"), nb::call_guard<nb::gil_scoped_release>(),
            "Packets, bytes, dropped packets and dropped bytes of each of these meters.")
        .def("links", &Switch::links, nb::call_guard<nb::gil_scoped_release>(),
             "Whether the link of each port is up; holds up no core.")
        .def("drain", &Switch::drain, nb::arg("timeout_s"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Stops receiving, and waits until the frames held have left at their pace. False: "
             "some are left.")
        .def("stop", &Switch::stop, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

}  // namespace daqloom::bindings

NB_MODULE(_switch, module) {
    module.doc() = "The software switch of daqloom over DPDK.";
    module.attr("EVERY_VLAN") = daqloom::softswitch::MacTable::kEveryVlan;
    daqloom::bindings::bind_configurations(module);
    daqloom::bindings::bind_matches(module);
    daqloom::bindings::bind_state(module);
    daqloom::bindings::bind_changes(module);
    daqloom::bindings::bind_switch(module);
    daqloom::bindings::bind_trials(module);
}

// The Python module daqloom._switch: the software switch over DPDK's devices. A separate module,
// built where DPDK is installed; the rest of daqloom works without it.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
    nb::class_<Match>(module, "Match", "Required header fields of a frame; None matches any value.")
        .def(nb::init<>())
        .def_prop_rw(
            "destination",
            [](const Match& self) {
                return self.destination ? std::optional(self.destination->value) : std::nullopt;
            },
            [](Match& self, std::optional<std::uint64_t> address) {
                self.destination = address ? std::optional(MacAddress{*address}) : std::nullopt;
            })
        .def_rw("vlan", &Match::vlan)
        .def_rw("ethertype", &Match::type)
        .def(
            "set_to",
            [](Match& self, const nb::bytes& address, std::uint8_t prefix) {
                if (address.size() != 16 || prefix > 128) {
                    throw nb::value_error("an address has 16 bytes, and a prefix up to 128 bits");
                }
                IpAddress to;
                for (std::size_t i = 0; i < 8; ++i) {
                    const auto* bytes = static_cast<const std::uint8_t*>(address.data());
                    to.high = to.high << 8 | bytes[i];
                    to.low = to.low << 8 | bytes[8 + i];
                }
                self.to = to;
                self.prefix = prefix;
            },
            nb::arg("address"), nb::arg("prefix"),
            "An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d, and its prefix length.")
        .def_prop_rw(
            "protocol",
            [](const Match& self) {
                return self.protocol ? std::optional(static_cast<std::uint8_t>(*self.protocol))
                                     : std::nullopt;
            },
            [](Match& self, std::optional<std::uint8_t> number) {
                self.protocol =
                    number ? std::optional(static_cast<IpProtocol>(*number)) : std::nullopt;
            })
        .def_rw("from_port", &Match::from_port)
        .def_rw("to_port", &Match::to_port)
        .def_rw("ingress", &Match::ingress);
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
    nb::class_<SwitchState::Port>(module, "PortState")
        .def_ro("device", &SwitchState::Port::device)
        .def_ro("frames", &SwitchState::Port::frames)
        .def_ro("addresses", &SwitchState::Port::addresses);
    nb::class_<SwitchState::Ring>(module, "RingState")
        .def_ro("counters", &SwitchState::Ring::counters)
        .def_ro("packets", &SwitchState::Ring::packets)
        .def_ro("bytes", &SwitchState::Ring::bytes)
        .def_ro("waits", &SwitchState::Ring::waits,
                "Histogram of waiting times: below 2^16 ps, and in each bucket twice as long.");
    nb::class_<SwitchState>(module, "SwitchState")
        .def_ro("ports", &SwitchState::ports)
        .def_ro("rings", &SwitchState::rings)
        .def_ro("loop", &SwitchState::loop)
        .def_ro("addresses", &SwitchState::addresses)
        .def_ro("known_addresses", &SwitchState::known_addresses)
        .def_ro("rules", &SwitchState::rules)
        .def_ro("ring_memory", &SwitchState::ring_memory)
        .def_ro("shared_peak", &SwitchState::shared_peak,
                "Most bytes held in the shared memory at a time, since peaks were reset.")
        .def_ro("free_buffers", &SwitchState::free_buffers)
        .def_ro("at_s", &SwitchState::at);
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

/// Changes between two turns, in order. A step returns false if a table is full; the later steps
/// are skipped.
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

void bind_changes(nb::module_& module) {
    nb::class_<Changes>(module, "Changes",
                        "Changes to apply between two turns of the switch, step by step.")
        .def(nb::init<>())
        .def("__len__", [](const Changes& self) { return self.steps.size(); })
        .def(
            "set_rate",
            [](Changes& self, RingIndex ring, base::BitRate rate) {
                self.add([=](Forwarder& to) { to.queues().set_rate(ring, rate); });
            },
            nb::arg("ring"), nb::arg("rate_bps"))
        .def(
            "set_limits",
            [](Changes& self, RingIndex ring, std::uint32_t packets, base::Bytes bytes) {
                self.add([=](Forwarder& to) { to.queues().set_limits(ring, packets, bytes); });
            },
            nb::arg("ring"), nb::arg("packets"), nb::arg("bytes"))
        .def(
            "set_mark",
            [](Changes& self, RingIndex ring, base::Bytes bytes) {
                self.add([=](Forwarder& to) { to.queues().set_mark(ring, bytes); });
            },
            nb::arg("ring"), nb::arg("bytes"))
        .def(
            "set_port_limits",
            [](Changes& self, PortIndex port, const PortLimits& limits) {
                self.add([=](Forwarder& to) { return to.set_limits(port, limits); });
            },
            nb::arg("port"), nb::arg("limits"), "Refused if there is no such port.")
        .def("forget_peaks",
             [](Changes& self) { self.add([](Forwarder& to) { to.queues().forget_peaks(); }); })
        .def(
            "set_pause",
            [](Changes& self, RingIndex ring, std::uint32_t packets) {
                self.add([=](Forwarder& to) { to.set_pause(ring, packets); });
            },
            nb::arg("ring"), nb::arg("packets"))
        .def(
            "set_mirrored",
            [](Changes& self, RingIndex ring, bool is) {
                self.add([=](Forwarder& to) { to.set_mirrored(ring, is); });
            },
            nb::arg("ring"), nb::arg("is_mirrored"))
        .def(
            "set_rule",
            [](Changes& self, const Match& match, std::uint16_t priority, const Action& action) {
                self.add([=](Forwarder& to) { return to.set_rule(match, priority, action); });
            },
            nb::arg("match"), nb::arg("priority"), nb::arg("action"),
            "Refused if the table is full.")
        .def(
            "remove_rule",
            [](Changes& self, const Match& match, std::uint16_t priority) {
                self.add([=](Forwarder& to) { std::ignore = to.remove_rule(match, priority); });
            },
            nb::arg("match"), nb::arg("priority"))
        .def(
            "set_flow",
            [](Changes& self, FlowIndex index, const Match& match, std::uint16_t priority,
               const Action& action, MeterIndex meter) {
                self.add([index, entry = FlowEntry{match, priority, action, meter}](Forwarder& to) {
                    return to.set_flow(index, entry);
                });
            },
            nb::arg("index"), nb::arg("match"), nb::arg("priority"), nb::arg("action"),
            nb::arg("meter"),
            "Sets an entry of the flow table; meter -1: none. Refused for too many kinds of "
            "matches.")
        .def(
            "remove_flow",
            [](Changes& self, FlowIndex index) {
                self.add([=](Forwarder& to) { to.remove_flow(index); });
            },
            nb::arg("index"))
        .def(
            "set_meter",
            [](Changes& self, MeterIndex index, bool is_of_packets, std::uint64_t per_second,
               std::uint64_t burst) {
                const MeterConfig config{
                    is_of_packets ? MeterConfig::Unit::packets : MeterConfig::Unit::bits,
                    per_second, burst};
                self.add([=](Forwarder& to) { return to.set_meter(index, config); });
            },
            nb::arg("index"), nb::arg("is_of_packets"), nb::arg("per_second"), nb::arg("burst"),
            "Configures a meter of bits or packets; resets its counters. Refused if there is no "
            "such meter.")
        .def(
            "fix_address",
            [](Changes& self, std::uint64_t address, std::uint16_t vlan, PortIndex port) {
                self.add(
                    [=](Forwarder& to) { return to.fix_address(MacAddress{address}, vlan, port); });
            },
            nb::arg("address"), nb::arg("vlan"), nb::arg("port"),
            "Fixes an address in a VLAN, or with EVERY_VLAN in each. Refused if it has no place.")
        .def(
            "forget_address",
            [](Changes& self, std::uint64_t address, std::uint16_t vlan) {
                self.add([=](Forwarder& to) {
                    std::ignore = to.forget_address(MacAddress{address}, vlan);
                });
            },
            nb::arg("address"), nb::arg("vlan"));
}

/// Counters summed over all cores for each index: `of` reads one in a core with `many` of them;
/// others count 0.
template <std::size_t numbers, class Index, class Many, class Of>
std::vector<std::array<std::uint64_t, numbers>> counted(Switch& self,
                                                        const std::vector<Index>& indices,
                                                        Many many, Of of) {
    std::vector<std::array<std::uint64_t, numbers>> all(indices.size());
    self.change([&](const Forwarder& core) {
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (indices[i].value() < many(core.flow_table())) {
                const std::array<std::uint64_t, numbers> its = of(core.flow_table(), indices[i]);
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
                    self, indices, [](const FlowTable& of) { return of.most(); },
                    [](const FlowTable& of, FlowIndex index) {
                        const FlowTable::Counters& its = of.counters(index);
                        return std::array{its.packets, its.bytes};
                    });
            },
            nb::arg("indices"), nb::call_guard<nb::gil_scoped_release>(),
            "Packets and bytes that matched, for each of these entries of the flow table.")
        .def(
            "meter_counts",
            [](Switch& self, const std::vector<MeterIndex>& indices) {
                return counted<4>(
                    self, indices, [](const FlowTable& of) { return of.meters().size(); },
                    [](const FlowTable& of, MeterIndex index) {
                        const MeterCounters& its = of.meters().counters(index);
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

"""Which keys a method does not use; the warnings of a result name those that its scenario gives.

A key counts as given where the scenario sets it to another value than its default. Keys that mean
nothing beside the choices of a scenario are refused when it is read (`choices`), and what a method
cannot do is refused by the method.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from daqloom.results.metrics import Parts
from daqloom.scenario.document import given
from daqloom.scenario.schema.building import PACKED
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import parts_of
from daqloom.scenario.schema.switches import LEVELS

Method = Literal["analyse", "simulate", "measure"]


@dataclass(frozen=True)
class Unused:
    """Keys without effect on a method."""

    keys: tuple[str, ...]
    """Dotted names; `hosts.latency.*` stands for all keys of a table."""
    why: str
    """Reason: what the method takes instead. Empty for keys that no reader expects the method to
    use, such as the tables of other methods: warnings do not name them."""
    when: Callable[[Scenario], bool] = lambda _: True
    """Whether the keys have no effect for a scenario."""
    but: tuple[str, ...] = ()
    """Keys of these tables that the method does use."""

    def name(self, path: str) -> str:
        """Return the entry of `keys` that a key belongs to; empty if there is none."""
        if path in self.but:
            return ""
        return next((key for key in self.keys if _is_in(path, key)), "")


def _is_in(path: str, key: str) -> bool:
    return path == key or (key.endswith(".*") and path.startswith(key[:-1]))


def _has_own_network(scenario: Scenario) -> bool:
    return not scenario.measure.has_network


_COUNTED = ("network.technology", "network.shape", "network.racks")
"""Keys that decide on the number of units."""
_TCP = ("transport.congestion", "transport.static_window")
_OF_PACKETS = ("rings", "ecn_threshold", "scheduling", "weights")
_OF_CORES = ("cores", "packet_cost", "batch_cost", "memory_bandwidth", "pace", "pace_counts")
_PRICES = Unused(tuple(f"network.switch.{level}.cost" for level in LEVELS), "")
"""Prices are printed by `daqloom demo` and by reports."""
_MACHINE = "the network is that of this machine, unless measure.lab or measure.device is set"
_HOSTS = "hosts and messages cost what they cost on this machine"

UNUSED: dict[Method, tuple[Unused, ...]] = {
    "analyse": (
        _PRICES,
        Unused(("run.*", "measure.*"), ""),
        Unused(
            (
                "hosts.send_rate",
                "hosts.receive_rate",
                "hosts.shared_cores",
                "hosts.packet_latency.*",
                "hosts.jitter",
                "hosts.scheduling",
                "hosts.weights",
                "building.event_manager",
            ),
            "closed forms take no time of hosts for bytes and packets",
        ),
        Unused(
            (
                "event.lhc.*",
                "event.size_spread",
                "event.size_quantum",
                "event.trace",
                "building.jitter.kind",
                "building.jitter.spread",
                "hosts.latency.kind",
                "hosts.latency.spread",
            ),
            "closed forms take means",
        ),
        Unused(
            ("hosts.clock_offset", "hosts.clock_drift"),
            "phases do not follow clocks",
            lambda s: s.building.protocol != "shift" or s.building.change != "window",
        ),
        Unused(
            ("event.fragment_sizes",),
            "closed forms take means",
            lambda s: s.building.protocol == "daqpipe",
        ),
        Unused(
            ("hosts.latency.*", "hosts.local_rate", "hosts.message_cost", "hosts.polling_delay"),
            "closed forms of a rack take readout.message_cost and builders.message_cost alone",
            lambda s: Parts.INCAST in parts_of(s),
        ),
        Unused(
            ("readout.buffer", "readout.card.*"),
            "closed forms take buffers of readout units as large enough",
        ),
        Unused(
            (
                "transport.rto_min",
                "transport.rto_max",
                "transport.timer_tick",
                "transport.delayed_ack",
                "transport.ack_every",
                "transport.quick_acks",
                "transport.rack",
                "transport.tail_loss_probe",
                "transport.hystart",
                "transport.tso_burst",
                "transport.restart_after_idle",
                "transport.dctcp_g",
                "transport.retry_timeout",
                "transport.retry_count",
                "transport.retry_spread",
                "transport.connection",
                "transport.data_service_level",
                "transport.control_service_level",
            ),
            "closed forms take packets to arrive at the first attempt, on one virtual lane",
        ),
        Unused(
            (
                *(f"network.links.{link}.bucket" for link in ("source", "uplink", "access")),
                "network.links.bucket",
                *(f"network.switch.{level}.{key}" for level in LEVELS for key in _OF_PACKETS),
                *(f"network.switch.core.{key}" for key in _OF_CORES),
                "network.switch.leaf.*",
                "network.switch.spine.*",
                "network.hash_seed",
                "network.switch.buffer",
                "network.switch.crossbar_arbiter",
                "network.switch.crossbar_iterations",
                "network.switch.credit_release",
                "network.switch.head_of_queue_lifetime",
                "network.lanes.*",
            ),
            "closed forms take links, latencies and what ports of switches hold",
        ),
        Unused(
            ("network.switch.core.*",),
            "closed forms take links, and of switches the latency",
            lambda s: Parts.INCAST not in parts_of(s),
        ),
        Unused(
            (
                "faults.injected.*",
                "faults.routing",
                "faults.detection",
                "faults.sweep",
                "hosts.spares",
                "hosts.spare_takes",
            ),
            "closed forms describe the time without faults",
        ),
    ),
    "simulate": (
        _PRICES,
        Unused(("measure.*",), ""),
        Unused(("transport.overhead",), "simulated frames have their headers"),
    ),
    "measure": (
        _PRICES,
        Unused(("run.duration", "run.warmup"), ""),
        Unused(("network.*", "hosts.order"), _MACHINE, _has_own_network, but=_COUNTED),
        Unused(_TCP, _MACHINE, lambda s: _has_own_network(s) and s.measure.transport != "tcp"),
        Unused(("transport.*",), _MACHINE, _has_own_network, but=_TCP),
        Unused(
            (
                "hosts.message_cost",
                "hosts.send_rate",
                "hosts.receive_rate",
                "hosts.shared_cores",
                "hosts.polling_delay",
                "hosts.latency.*",
                "hosts.packet_latency.*",
                "hosts.pcie_rate",
                "hosts.memory_rate",
                "hosts.memory_passes",
                "hosts.local_rate",
                "hosts.clock_offset",
                "hosts.clock_drift",
                "hosts.scheduling",
                "hosts.weights",
                "readout.message_cost",
                "builders.message_cost",
                "building.request_size",
                "building.control_size",
                "building.event_manager",
                "measure.join_time",
                "hosts.jitter",
                "transport.retry_spread",
            ),
            _HOSTS,
        ),
        Unused(
            ("builders.processing", "readout.card.*"),
            "live units of linear shifting and DAQPIPE process no events and have no cards",
            lambda s: s.building.protocol in PACKED.among,
        ),
        Unused(
            ("faults.cables", "faults.routing", "faults.detection", "faults.sweep"),
            "cables and routing tables of this machine stay as they are",
        ),
    ),
}
"""By method, what it does not use."""


def rule_for(scenario: Scenario, method: Method, path: str) -> Unused | None:
    """Return why the method does not use a key of the scenario; None if it does."""
    rules = (rule for rule in UNUSED[method] if rule.name(path))
    return next((rule for rule in rules if rule.when(scenario)), None)


def unused(scenario: Scenario, method: Method) -> Iterator[tuple[str, Unused]]:
    """Return the keys that the scenario gives and the method does not use."""
    for path in given(scenario.model_dump(mode="json", exclude_unset=True)):
        rule = rule_for(scenario, method, path)
        if rule and not _is_default(scenario, path):
            yield path, rule


def unused_warnings(scenario: Scenario, method: Method) -> list[str]:
    """Return a sentence for each reason why keys that the scenario gives are not used."""
    named = {(rule.why, rule.name(path)) for path, rule in unused(scenario, method)}
    by_reason: dict[str, list[str]] = {}
    for rule in UNUSED[method]:
        keys = [key for key in rule.keys if rule.why and (rule.why, key) in named]
        if keys:
            by_reason.setdefault(rule.why, []).extend(keys)
    return [f"without effect: {', '.join(keys)}; {why}" for why, keys in by_reason.items()]


def _is_default(scenario: Scenario, path: str) -> bool:
    """Return whether the value of a key is its neutral default; tables by name have none."""
    part: Any = scenario
    *tables, name = path.split(".")
    for table in tables:
        part = part[table] if isinstance(part, dict) else getattr(part, table)
    default = type(part).model_fields[name].get_default(call_default_factory=True)
    return bool(getattr(part, name) == default)

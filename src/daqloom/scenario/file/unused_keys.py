"""Keys that a method ignores; a result warns of those that differ from their defaults. In contrast,
keys that do not apply to a system raise errors, as do systems that a method cannot evaluate."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from daqloom.scenario.document import keys
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts
from daqloom.scenario.schema.switches import LEVELS

Method = Literal["analyse", "simulate", "measure"]


@dataclass(frozen=True)
class UnusedKey:
    """Keys without effect on a method."""

    keys: tuple[str, ...]
    """Dotted names; `hosts.latency.*` means all keys of the table."""
    why: str
    """Reason, for the warning. Keys with an empty reason cause no warning, because users do not
    expect an effect, for example of the table [measure] on a simulation."""
    when: Callable[[Scenario], bool] = lambda _: True
    """Function that returns whether the method ignores the keys for a given scenario."""
    but: tuple[str, ...] = ()
    """Exceptions: keys in these tables that the method uses, written as `keys`."""

    def name(self, path: str) -> str:
        """Return the entry of `keys` that covers a key, "" if there is none."""
        if any(_is_in(path, key) for key in self.but):
            return ""
        return next((key for key in self.keys if _is_in(path, key)), "")


def _is_in(path: str, key: str) -> bool:
    return path == key or (key.endswith(".*") and path.startswith(key[:-1]))


def _keys(*tables: str) -> tuple[str, ...]:
    """Return the dotted names of keys, each of `tables` written as `TABLE: KEY KEY …`."""
    parts = (text.partition(": ") for text in tables)
    return tuple(f"{table}.{key}" for table, _, keys in parts for key in keys.split())


def _has_own_network(scenario: Scenario) -> bool:
    return not scenario.measure.has_network


_COUNTED = _keys("network: technology shape racks")
"""Network keys that determine the number of units."""
_OF_FLOWS = _keys("network: mtu links.*")
"""Network keys that determine the datagrams and the rates of flows."""
_TCP = _keys("transport: congestion static_window")
_PRICES = UnusedKey(_keys(*(f"network.switch.{level}: cost" for level in LEVELS)), "")
"""Prices of switches affect no method; only `daqloom demo` and reports print them."""
_MACHINE = "the network is that of this machine, unless measure.lab or measure.device is set"
_MEANS = "closed forms take means"

UNUSED: dict[Method, tuple[UnusedKey, ...]] = {
    "analyse": (
        _PRICES,
        UnusedKey(("run.*", "measure.*"), ""),
        UnusedKey(
            _keys(
                "hosts: send_rate receive_rate shared_cores packet_latency.* jitter scheduling",
                "hosts: weights",
                "building: event_manager",
            ),
            "closed forms leave out the time of hosts per byte and packet",
        ),
        UnusedKey(
            _keys(
                "event: lhc.* size_spread size_quantum trace",
                "building.jitter: kind spread",
                "hosts.latency: kind spread",
            ),
            _MEANS,
        ),
        UnusedKey(
            _keys("hosts: clock_offset clock_drift"),
            "phases do not follow clocks",
            lambda s: s.building.change != "window",
        ),
        UnusedKey(("storage.timeout",), "closed forms lose no event on its way to storage"),
        UnusedKey(("event.fragment_sizes",), _MEANS, lambda s: s.protocol.requests),
        UnusedKey(
            _keys("hosts: latency.* local_rate message_cost polling_delay"),
            "closed forms of a rack take readout.message_cost and builders.message_cost alone",
            lambda s: Parts.INCAST in s.parts,
        ),
        UnusedKey(
            _keys("readout: buffer card.*"),
            "closed forms take buffers of readout units as large enough",
        ),
        UnusedKey(
            _keys(
                "transport: rto_min rto_max timer_tick delayed_ack ack_every quick_acks rack",
                "transport: tail_loss_probe hystart tso_burst restart_after_idle dctcp_g",
                "transport: retry_timeout retry_count retry_spread connection",
                "transport: data_service_level control_service_level",
            ),
            "closed forms take packets to arrive at the first attempt, on one virtual lane",
        ),
        UnusedKey(
            _keys(
                "network.links: source.bucket uplink.bucket access.bucket storage.bucket bucket",
                *(
                    f"network.switch.{level}: rings ecn_threshold scheduling weights"
                    for level in LEVELS
                ),
                "network.switch.core: cores packet_cost batch_cost memory_bandwidth pace",
                "network.switch: core.pace_counts leaf.* spine.*",
                "network: hash_seed",
                "network.switch: buffer crossbar_arbiter crossbar_iterations credit_release",
                "network.switch: head_of_queue_lifetime",
                "network: lanes.*",
            ),
            "closed forms take links, latencies and what ports of switches hold",
        ),
        UnusedKey(
            ("network.switch.core.*",),
            "closed forms take links, and of switches the latency",
            lambda s: Parts.INCAST not in s.parts,
        ),
        UnusedKey(
            _keys("faults: injected.* routing detection sweep", "hosts: spares spare_takes"),
            "closed forms describe the time without faults",
        ),
    ),
    "simulate": (
        _PRICES,
        UnusedKey(("measure.*",), ""),
        UnusedKey(("transport.overhead",), "simulated frames have their headers"),
    ),
    "measure": (
        _PRICES,
        UnusedKey(_keys("run: duration warmup"), ""),
        UnusedKey(
            ("network.routing",),
            "units take the order of mended, and only switches of measure.lab its tables",
            lambda s: _has_own_network(s) and s.network.routing == "mended",
        ),
        UnusedKey(
            ("network.*", "hosts.order"),
            _MACHINE,
            lambda s: _has_own_network(s) and not s.flows,
            but=_COUNTED,
        ),
        UnusedKey(
            ("network.*", "hosts.order"),
            "the network is that of this machine; flows use network.mtu and network.links",
            lambda s: _has_own_network(s) and bool(s.flows),
            but=_COUNTED + _OF_FLOWS,
        ),
        UnusedKey(_TCP, _MACHINE, lambda s: _has_own_network(s) and s.measure.transport != "tcp"),
        UnusedKey(("transport.*",), _MACHINE, _has_own_network, but=_TCP),
        UnusedKey(
            _keys(
                "hosts: message_cost send_rate receive_rate shared_cores polling_delay latency.*",
                "hosts: packet_latency.* pcie_rate memory_rate memory_passes local_rate",
                "hosts: clock_offset clock_drift scheduling weights",
                "readout: message_cost",
                "builders: message_cost",
                "building: request_size control_size event_manager barrier_level_latency",
                "measure: join_time",
                "hosts: jitter",
                "transport: retry_spread",
            ),
            "the costs of hosts and messages are those of this machine",
        ),
        UnusedKey(
            _keys("readout: card.*"),
            'with measure.source = "user" your own source has the cards',
            lambda s: s.measure.source == "user",
        ),
        UnusedKey(
            _keys("faults: cables routing detection sweep"),
            "cables and routing tables of this machine stay as they are",
            lambda s: not s.measure.has_lab,
        ),
    ),
}
"""Rules on ignored keys, by method."""


def rule_for(scenario: Scenario, method: Method, path: str) -> UnusedKey | None:
    """Return the rule by which a method ignores a key of the scenario, None if it uses the key."""
    rules = (rule for rule in UNUSED[method] if rule.name(path) and rule.when(scenario))
    return next(rules, None)


def unused_keys(scenario: Scenario, method: Method) -> Iterator[tuple[str, UnusedKey]]:
    """Yield the ignored keys that a scenario sets to another value than the default."""
    for path in keys(scenario.model_dump(mode="json", exclude_unset=True)):
        rule = rule_for(scenario, method, path)
        if rule and not _is_default(scenario, path):
            yield path, rule


def unused_warnings(scenario: Scenario, method: Method) -> list[str]:
    """Return a warning for each reason, with the keys that the method ignores."""
    named = {(rule.why, rule.name(path)) for path, rule in unused_keys(scenario, method)}
    by_reason: dict[str, list[str]] = {}
    for rule in UNUSED[method]:
        keys = [key for key in rule.keys if rule.why and (rule.why, key) in named]
        if keys:
            by_reason.setdefault(rule.why, []).extend(keys)
    return [f"without effect: {', '.join(keys)}; {why}" for why, keys in by_reason.items()]


def _is_default(scenario: Scenario, path: str) -> bool:
    """Return whether the value of a key equals its default."""
    part: Any = scenario
    *tables, name = path.split(".")
    for table in tables:
        part = part[table] if isinstance(part, dict) else getattr(part, table)
    default = type(part).model_fields[name].get_default(call_default_factory=True)
    return bool(getattr(part, name) == default)

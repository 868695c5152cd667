"""Every key of a scenario changes what a method takes in, or is listed as unused by that method."""

import dataclasses
import enum
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin
from unittest import mock

import numpy as np
import pytest
from pydantic import BaseModel

from daqloom import _engine
from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.deployment.scenarios import load, override
from daqloom.lab.network import lab_network
from daqloom.measure.configure import _config
from daqloom.measure.fault_plan import unit_outages
from daqloom.measure.plan import plan_of
from daqloom.scenario.document import look
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.unused_keys import UNUSED, Method, rule_for, unused_keys, unused_warnings
from daqloom.scenario.quantities import dimension_of
from daqloom.scenario.schema.choices import Choices, keys_of, named_tables, table_of
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.ethernet import switch_config
from daqloom.study.methods import methods
from daqloom.topology.fabric.links import delays_s
from support.measure.live_nodes import TOKEN, configure

KEYS = {path: key for path, key in keys_of(Scenario).items() if not table_of(key.field)}
KEYS = {path: key for path, key in KEYS.items() if not named_tables(key.field)}
SHARED = {"model": "shared-memory", "buffer": "1 MB", "cell_size": "256 B", "dedicated": "10 kB"}
SOFTWARE = {"model": "software", "queue_packets": 100, "pace": "9 Gb/s", "packet_cost": "10 ns"}
SLOW = {"packet_cost": "2 us", "batch_cost": "1 us", "descriptors": 8}
DROP_TAIL = {"model": "drop-tail", "queue_packets": 50}
VOQ = {"model": "voq", "buffer": "10 MB"}
PORT = {"network.switch.tor.model": "drop-tail", "network.switch.tor.port_limit": "1 MB"}
ECN = PORT | {"network.switch.tor.ecn_threshold": "100 kB"}
CLASSES = PORT | {"hosts.scheduling": "weighted", "hosts.weights": [4, 1]}
CLASSES |= {"network.switch.tor.scheduling": "weighted", "network.switch.tor.weights": [4, 1]}
CARDS = {"event.rate": "1 MHz", "readout.card.buffer": "1 MB"}
CARDS |= {"readout.card.spike_probability": 1e-3}
FARM = {"readout.units": 4, "builders.units": 2, "building.concurrent_events": 1}
TREE = {"network.leaves": 2, "network.spines": 2, "network.hosts_per_leaf": 2}
GROUPS = [{"sources": 4, "share": 1.0}]
FAULT = {"faults.injected.killed.what": "unit", "faults.injected.killed.at": "5 ms"}


def tables(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": value for key, value in values.items()}


SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "shift": ("laptop", {"faults.cables": 0}),
    "shift, windows": ("laptop", {"building.change": "window"}),
    "shift, cards": ("laptop", CARDS),
    "shift, spares": ("laptop", {"readout.units": 3, "hosts.spares": 1} | FAULT),
    "daqpipe": ("daqpipe-laptop", {"event.groups": GROUPS}),
    "pull": ("laptop-pull", {}),
    "pull, lhc": ("laptop-pull", {"event.arrivals": "lhc"}),
    "rack, shared": ("small-rack", tables("network.switch.tor", SHARED)),
    "rack, storage": ("small-rack", {"storage.units": 2}),
    "rack, software": ("small-rack", tables("network.switch.tor", SOFTWARE)),
    "rack, slow cores": (
        "small-rack",
        tables("network.switch.tor", SOFTWARE | SLOW) | {"network.links.uplink.count": 2},
    ),
    "rack, drop-tail": ("small-rack", tables("network.switch.tor", DROP_TAIL)),
    "rack, voq": ("small-rack", tables("network.switch.tor", VOQ)),
    "rack, dctcp": ("small-rack", {"transport.congestion": "dctcp"} | ECN),
    "rack, classes": ("small-rack", CLASSES),
    "farm, shared": ("atlas-farm", FARM | tables("network.switch.core", SHARED)),
    "farm, software": ("atlas-farm", FARM | tables("network.switch.core", SOFTWARE)),
    "infiniband": ("ib-uniform-64", TREE | {"network.lanes.count": 2}),
    "ethernet tree": ("lossless-switch-all-to-all", {"readout.units": 4, "builders.units": 4}),
}
"""Scenarios which together have all kinds of parts."""

OTHER_VALUES: dict[str, tuple[Any, ...]] = {
    "builders.processing": ([{"mean": "1 ms"}],),
    "event.share": ([1, 2, 3, 4], [1, 2, 3, 4, 5, 6]),
    "event.groups": (
        [{"sources": 2, "share": 0.3}, {"sources": 2, "share": 0.7}],
        [{"sources": 1, "share": 0.3}, {"sources": 1, "share": 0.7}],
    ),
    "transport.congestion": ("cubic", "newreno"),
    "hosts.clock_drift": (1e-5,),
    "hosts.weights": ([1, 3],),
}
"""Keys whose values are no numbers, names or texts."""

_DRAWN = {"faults.seed", "hosts.order", "hosts.placement"}
_LARGE = {f"network.{key}" for key in ("core_links", "cores", "pods", "routers")}
_LARGE |= {"network.links.core.rate", "network.links.core.delay"}
_WIDE = {f"network.{key}" for key in ("leaves", "spines", "spine_links", "hosts_per_leaf")}

NOT_SHOWN: dict[Method, set[str]] = {
    "analyse": _DRAWN | _LARGE | _WIDE | {
        "network.shape", "network.switch.radix", "network.switch.crossbar_speedup",
        "network.switch.input_queue", "network.switch.spine.pace_counts",
        "building.phases_under_way", "building.dummy_phases", "building.grace",
        "hosts.clock_drift", "faults.cables", "transport.congestion",
        "transport.receive_window", "transport.static_window",
    },
    "simulate": _DRAWN | _LARGE | {
        "network.hash_seed",  # by a call for each switch; tests/simulate/test_ethernet_ecmp.py
        "hosts.spare_takes", "faults.routing", "faults.detection", "faults.sweep",
    },
    "measure": _DRAWN | {
        "network.routers", "network.technology", "network.shape", "transport.kind",
        "network.switch.spine.pace_counts",
    },
}  # fmt: skip
"""Keys that these small systems do not depend on: large networks, chance, limits that are not
reached."""


def other_values(scenario: Scenario, path: str) -> Iterator[Scenario]:
    """Return scenarios that differ in one key."""
    field = KEYS[path].field
    value = look(scenario.model_dump(), path)
    if path in OTHER_VALUES:
        found: tuple[Any, ...] = OTHER_VALUES[path]
    elif dimension := dimension_of(field):
        numbers = [1.25 * value, 0.8 * value, 0.5 * value, dimension.parse(dimension.example)]
        numbers += [100 * dimension.minimum, 1e-6, 1000, 1e9]
        numbers = [int(each) if dimension.whole else each for each in numbers if each]
        found = tuple(map(dimension.format, numbers))
    elif isinstance(value, bool):
        found = (not value,)
    elif get_origin(field.annotation) is Literal:
        found = tuple(each for each in get_args(field.annotation) if each != value)
    elif isinstance(value, int):
        found = (value + 1, 2 * value, value // 2, value - 1, 1)
    elif isinstance(value, float):
        found = (1.25 * value, 0.8 * value, 0.5, 1.0, 1000.0)
    else:
        found = ()
    for each in found:
        try:
            changed = override(scenario, {path: each})
        except ScenarioError:
            continue
        if look(changed.model_dump(), path) != value:
            yield changed


def content(value: Any) -> Any:
    """Return the attributes of an object of the engine, and theirs, as JSON."""
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, bytes | enum.Enum | BaseModel):
        return repr(type(value)) if isinstance(value, BaseModel) else str(value)
    if isinstance(value, list | tuple | set):
        return [content(each) for each in value]
    if isinstance(value, dict):
        return {str(key): content(each) for key, each in value.items()}
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
    else:
        kind = type(value)
        names = [n for n in dir(kind) if n[0] != "_" and not callable(getattr(kind, n))]
    return {name: content(getattr(value, name)) for name in names}


class _CaughtError(Exception):
    """The engine would start."""


def simulated(scenario: Scenario) -> Any:
    caught: list[Any] = []

    class Catch:
        def __init__(self, *arguments: Any) -> None:
            caught.append(content(arguments))
            raise _CaughtError

    systems = ("PullSystem", "ShiftSystem", "DaqpipeSystem", "FlowSystem")
    patches: dict[str, Any] = dict.fromkeys(systems, Catch)
    with mock.patch.multiple(_engine, **patches), pytest.raises(_CaughtError):
        methods.simulate(scenario)
    system = fabric_system(scenario)
    return caught, content(system), _of_network(scenario, system), scenario.run.duration


def _of_network(scenario: Scenario, system: FabricSystem) -> Any:
    """Return what the engine takes by calls in place of attributes."""
    links = delays_s(scenario.network, system.fabric)
    if scenario.network.technology == "infiniband":
        return content(links)
    switches = [system.switch_at(number) for number in range(len(system.fabric.switches))]
    return content((links, [switch_config(each, system, 0) for each in switches]))


def analysed(scenario: Scenario) -> Any:
    result = methods.analyse(scenario)
    known = [text for text in result.warnings if not text.startswith("without effect")]
    return result.metrics, result.analysis, known


def measured(scenario: Scenario) -> Any:
    plan = plan_of(scenario)
    units = [content(_config(scenario, configure(unit), TOKEN)) for unit in range(plan.rules.units)]
    lab = content(lab_network(scenario)) if scenario.measure.has_lab else None
    return content(plan.rules), units, content(unit_outages(scenario)), lab


INPUTS: dict[Method, Callable[[Scenario], Any]] = {"analyse": analysed, "simulate": simulated}
INPUTS["measure"] = measured


@functools.cache
def systems_of(protocol: str) -> list[tuple[Scenario, Choices]]:
    """Return the systems of a protocol."""
    loaded = [load(*arguments) for arguments in SYSTEMS.values()]
    mine = [each for each in loaded if each.building.protocol == protocol]
    return [(each, Choices(each.model_dump(mode="json"), Scenario)) for each in mine]


def as_text(method: Method, scenario: Scenario) -> str:
    return json.dumps(INPUTS[method](scenario), sort_keys=True)


def effects(method: Method, protocol: str) -> Iterator[tuple[str, str]]:
    """Return, for each key, "used", "named" (in the list of unused ones), "neither", or "both"."""
    systems = []
    for scenario, choices in systems_of(protocol):
        if method == "analyse" and not methods.analyse(scenario).metrics:
            continue  # no closed form, which is a warning
        if method == "measure" and scenario.storage.units:
            continue  # refused
        systems.append((scenario, choices, as_text(method, scenario)))
    for path in KEYS:
        if not path.startswith("measure."):
            for effect in _effects(method, path, systems):
                yield path, effect
                if effect != "neither":
                    break


def _effects(
    method: Method, path: str, systems: Sequence[tuple[Scenario, Choices, str]]
) -> Iterator[str]:
    for scenario, choices, before in systems:
        if choices.unmet(path):
            continue
        for changed in other_values(scenario, path):
            is_named = path in dict(unused_keys(changed, method))
            try:
                is_used = as_text(method, changed) != before
            except ScenarioError:
                continue  # refused, which is an answer
            yield {2: "both", 0: "neither"}.get(is_used + is_named, "used" if is_used else "named")


PROTOCOLS = [(method, each) for method in INPUTS for each in ("pull", "shift", "daqpipe")]


@pytest.mark.parametrize(("method", "protocol"), [*PROTOCOLS, ("simulate", "none")])
def test_each_key_changes_the_input_of_a_method_or_is_named(method: Method, protocol: str) -> None:
    found: dict[str, set[str]] = {}
    for path, effect in effects(method, protocol):
        found.setdefault(path, set()).add(effect)
    both = {path for path, effect in found.items() if "both" in effect}
    neither = {path for path, effect in found.items() if effect == {"neither"}}
    assert not both, "named as unused, but they change the input"
    assert neither - NOT_SHOWN[method] == set(), "without effect, and not named"
    assert len(found) > 45


def test_a_result_names_the_keys_that_its_method_does_not_use() -> None:
    slow = load("laptop", {"builders.processing": [{"mean": "2 s"}], "event.rate": "1 MHz"})
    slow = override(slow, {"readout.card.buffer": "1 MB"})
    for method in ("simulate", "measure"):
        assert not [text for text in unused_warnings(slow, method) if "processing" in text]
        assert not [text for text in unused_warnings(slow, method) if "card" in text]
    own = override(slow, {"measure.source": "user"})
    [about_cards] = [text for text in unused_warnings(own, "measure") if "card" in text]
    text = 'with measure.source = "user" your own source has the cards'
    assert about_cards == f"without effect: readout.card.*; {text}"


def test_flows_of_a_measurement_use_the_rates_of_links() -> None:
    flow = {"flows.a.source": 0, "flows.a.destination": 1, "flows.a.load": 0.1}
    alone = load("laptop", {"network.links.rate": "10 Gb/s", "measure.transport": "tcp"})
    for scenario, is_used in ((alone, False), (override(alone, flow), True)):
        rule = rule_for(scenario, "measure", "network.links.rate")
        assert (rule is None) == is_used
        [warning] = unused_warnings(scenario, "measure")
        assert warning.startswith("without effect: network.*; the network is that of this machine")
        assert ("network.links" in warning) == is_used


def test_a_default_that_is_given_is_not_named() -> None:
    assert not unused_warnings(load("laptop", {"transport.mtu": "4096 B"}), "simulate")
    given = load("small-rack", {"transport.overhead": True})
    assert not unused_warnings(given, "simulate")
    headers = "without effect: transport.overhead; simulated frames have their headers"
    given = load("small-rack", {"transport.overhead": False})
    assert unused_warnings(given, "simulate") == [headers]


def test_each_entry_is_a_key_or_a_table() -> None:
    every = set(keys_of(Scenario))
    for rules in UNUSED.values():
        for key in (key for rule in rules for key in (*rule.keys, *rule.but)):
            assert key.removesuffix(".*") in every

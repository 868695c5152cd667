"""Ethernet network of a simulation: its configuration in the engine, and its metrics."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from daqloom import _engine
from daqloom.configuration.settings import settings
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.scheduling import CLASSES, Scheduling
from daqloom.scenario.schema.switches import Switch
from daqloom.simulate.graph import graph_fields
from daqloom.topology.fabric.links import buckets_bytes, means_by_kind, most_by_level


def ethernet_config(
    scenario: Scenario,
    system: FabricSystem,
    seed: int,
    changes: Sequence[_engine.LinkChange] = (),
    reroutings: Sequence[_engine.Rerouting] = (),
) -> _engine.EthernetConfig:
    """Return the network, with its changes during the run: link 2c leads from end a of cable c to
    end b, link 2c + 1 from b to a."""
    network = system.network
    if unknown := sorted(
        {switch.name for switch in network.switch.named}
        - {switch.name for switch in system.fabric.switches}
    ):
        raise ScenarioError(
            f"network.switch.named has {unknown[0]}, which is no switch of the network; expected "
            f"one such as {system.fabric.switches[0].name}"
        )
    return settings(
        _engine.EthernetConfig,
        **graph_fields(system),
        link_names=[name for name, _ in system.links],
        buckets=buckets_bytes(network, system.fabric),
        # A service level is a class; the engine's tables grow with the highest level in use.
        service_classes=list(range(1 + max(scenario.service_levels.values(), default=0))),
        host_schedule=_schedule(scenario.hosts),
        host_jitter=scenario.hosts.jitter,
        seed=seed,
        switches=[
            switch_config(system.switch_at(number), system, _hash_seed(seed, system, node.name))
            for number, node in enumerate(system.fabric.switches)
        ],
        changes=changes,
        reroutings=reroutings,
    )


def _hash_seed(seed: int, system: FabricSystem, switch: str) -> int:
    own = switch if system.network.hash_seed == "per-switch" else ""
    return zlib.crc32(f"{seed} {own}".encode(errors="surrogateescape"))


def switch_config(switch: Switch, system: FabricSystem, hash_seed: int) -> _engine.SwitchConfig:
    """Return the engine's configuration of a switch and its buffer."""
    software = _engine.SoftwareSwitchConfig()
    if switch.architecture == "software":
        software = settings(
            _engine.SoftwareSwitchConfig,
            switch,
            ring_packets=switch.queue_packets,
            pace_counts_wire=switch.pace_counts == "wire",
            destinations=system.with_rings(switch),
        )
    return settings(
        _engine.SwitchConfig,
        switch,
        model=switch.architecture,
        dedicated_ports=switch.ports,
        schedule=_schedule(switch),
        software=software,
        hash_seed=hash_seed,
    )


def _schedule(port: Scheduling) -> _engine.Schedule:
    """Return the scheduling of frames at a port, with a weight for each class."""
    weights = [*port.weights, *[0] * (CLASSES - len(port.weights))]
    return settings(_engine.Schedule, port, weights=weights)


def ethernet_metrics(
    system: FabricSystem, report: _engine.RunReport, window_s: float
) -> dict[str, Any]:
    """Return the metrics of the network for the `window_s` seconds after the warm-up."""
    links = report.links
    names = [link.name for link in system.links]
    dropped = zip(names, links.drops.tolist(), strict=True)
    by_port = {name: drops for name, drops in dropped if drops}
    switches = map(system.switch_at, range(len(system.fabric.switches)))
    return {
        "buffer_peak_bytes": most_by_level(system.levels, report.switches.peak_bytes.tolist()),
        **_buffer_needs(system, report),
        "packets_dropped": report.drops,
        **({"drops_by_port": by_port} if system.network.is_racks else {}),
        **_drop_fraction(
            report.drops,
            dict(zip(names, links.frames.tolist(), strict=True)),
            {link.name for link in system.links if link.kind in FROM_HOSTS},
        ),
        **_by_class(report.classes),
        "packets_marked": report.marks,
        **({"pause_frames": report.pauses} if any(each.pause_at for each in switches) else {}),
        "link_utilisation": _utilisation(system, links, window_s),
        "packet_hops": sum(links.frames.tolist()),
        "ack_hops": sum(links.ack_frames.tolist()),
    }


FROM_HOSTS = ("source.up", "access.up", "host.up")
"""Kinds of links that leave a host."""


def _buffer_needs(system: FabricSystem, report: _engine.RunReport) -> dict[str, Any]:
    """Return the buffer sizes that shared-memory switches needed; empty if packets were dropped."""
    needed = most_by_level(system.levels, report.switches.needed_bytes.tolist())
    needed = {level: size for level, size in needed.items() if size}
    return {} if report.drops or not needed else {"buffer_needed_bytes": needed}


def _by_class(classes: _engine.Classes) -> dict[str, dict[str, int]]:
    """Return bytes and drops of each class; empty if there is a single class."""
    summed: dict[str, dict[str, int]] = {}
    columns = {"class_bytes": classes.wire_bytes, "class_drops": classes.drops}
    for name, column in columns.items():
        for number, value in zip(classes.traffic_class.tolist(), column.tolist(), strict=True):
            of_metric = summed.setdefault(name, {})
            of_metric[str(number)] = of_metric.get(str(number), 0) + value
    return {name: dict(sorted(of_metric.items())) for name, of_metric in summed.items()}


def class_warnings(scenario: Scenario) -> list[str]:
    """Return a warning if messages have several service levels that no port distinguishes."""
    if scenario.network.technology != "ethernet" or scenario.has_classes or not scenario.has_levels:
        return []
    return [
        "messages have several service levels, and all ports send first-in first-out: the levels "
        "make no difference; set network.switch.LEVEL.scheduling or hosts.scheduling"
    ]


def _drop_fraction(drops: int, frames: Mapping[str, int], from_hosts: set[str]) -> dict[str, float]:
    """Return dropped / (dropped + forwarded), from the frames of all links except those from hosts.
    Frames in flight when counting begins or ends cause an error in this number."""
    forwarded = sum(count for name, count in frames.items() if name not in from_hosts)
    arrived = drops + forwarded
    return {"drop_fraction": drops / arrived} if arrived else {}


def _utilisation(system: FabricSystem, links: _engine.Links, window_s: float) -> dict[str, float]:
    """Return the mean utilisation by kind and direction of links; in a rack, also of each link."""
    columns = zip(links.wire_bytes.tolist(), links.rate_bps.tolist(), strict=True)
    busy = [8 * nbytes / (rate_bps * window_s) for nbytes, rate_bps in columns]
    means = means_by_kind(system.links, busy)
    if system.network.shape == "rack":
        means |= {link.name: share for link, share in zip(system.links, busy, strict=True)}
    return means


def ethernet_ports(system: FabricSystem, report: _engine.RunReport) -> dict[str, list[Any]]:
    """Return names and counters of all output ports, counted after the warm-up."""
    ends = (end for cable in system.fabric.cables for end in (cable.a, cable.b))
    return {
        "name": [system.fabric.end_name(end) for end in ends],
        "bytes": report.links.wire_bytes.tolist(),
        "drops": report.links.drops.tolist(),
    }

"""A switch that runs on DPDK as its file describes; the file may change meanwhile."""

import os
import secrets
import threading
from collections.abc import Mapping
from typing import Any

from daqloom._switch import Changes, Switch, SwitchState
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.changes import changes_between
from daqloom.softswitch.configure import config_of, first_ring, keep_dpdk_apart, ring_names
from daqloom.softswitch.document import MOST_BYTES, SwitchFile
from daqloom.softswitch.load import alter
from daqloom.softswitch.status import PortStatus, RingStatus, SwitchStatus

CHANGEABLE = "rates, sizes and matches of rings, limits of ports, rules, addresses.fixed"
"""Keys of the file that may change while the switch runs."""


class RunningSwitch:
    """A switch from its start to its end; a process can run only one. Methods are thread-safe."""

    def __init__(self, switch: SwitchFile) -> None:
        """Start the switch. Raises MeasureError."""
        self.file = switch
        self._identity = secrets.token_hex(16)
        self._changing = threading.Lock()
        self._owners: dict[str, str] = {}
        """Owner of the pace of each ring, if not the file."""
        self._stopping = False
        keep_dpdk_apart()
        try:
            self._switch = Switch(config_of(switch))
        except (ValueError, OSError) as error:
            raise MeasureError(str(error)) from None
        try:
            self._enter(SwitchFile.model_construct(**_empty_fields(switch)), switch)
        except ScenarioError as error:
            self._switch.stop()
            raise MeasureError(str(error)) from None
        self._switch.open()

    def change(self, keys: Mapping[str, Any]) -> None:
        """Change keys of the file: dotted path → value; None removes the key or table. On an error,
        raises ScenarioError and changes nothing."""
        with self._changing:
            changed = alter(self.file, keys)
            self._check(changed)
            for name, owner in self._owners.items():
                if changed.rings[name].rate != self.file.rings[name].rate:
                    raise ScenarioError(
                        f"rings.{name}.rate belongs to {owner}; set other_config:max-rate there, "
                        "or remove that key"
                    )
            self._enter(self.file, changed)
            self.file = changed

    def set_owned_rates(self, rates: Mapping[str, int], owners: Mapping[str, str]) -> None:
        """Set the owners of paces, and some paces (b/s); the file owns all other paces. On an
        error, raises ScenarioError and changes nothing."""
        with self._changing:
            keys = {
                f"rings.{name}.rate": f"{rate} b/s"
                for name, rate in rates.items()
                if self.file.rings[name].rate != rate
            }
            self._owners = dict(owners)
            if keys:
                changed = alter(self.file, keys)
                self._enter(self.file, changed)
                self.file = changed

    def status(self, failure: str = "") -> SwitchStatus:
        """Return the status of the switch with its present counters."""
        state = self._switch.state()
        return SwitchStatus(
            title=self.file.title,
            pid=os.getpid(),
            identity=self._identity,
            time_s=state.at_s,
            stopping=self._stopping,
            ports=tuple(self._ports(state)),
            rings=tuple(self._rings(state)),
            addresses={
                "known": state.known_addresses,
                "fixed": len(self.file.addresses.fixed),
                **_counts(state.addresses),
            },
            loop=_counts(state.loop),
            memory={
                "ring_bytes": state.ring_memory,
                "free_buffers": state.free_buffers,
                "shared_peak_bytes": state.shared_peak,
            },
            failure=failure,
        )

    def apply(self, changes: Changes) -> int:
        """Apply changes that are not in the file between two turns; return the number of a refused
        step, or -1."""
        return self._switch.apply(changes)

    def forget_peaks(self) -> None:
        """Reset the peaks of rings."""
        changes = Changes()
        changes.forget_peaks()
        self.apply(changes)

    def flow_counts(self, indices: list[int]) -> list[tuple[int, int]]:
        """Return packets and bytes of entries in the flow table."""
        return [(packets, size) for packets, size in self._switch.flow_counts(indices)]

    def meter_counts(self, indices: list[int]) -> list[tuple[int, int, int, int]]:
        """Return packets, bytes, dropped packets and dropped bytes of each meter."""
        return [(p, b, dp, db) for p, b, dp, db in self._switch.meter_counts(indices)]

    def links(self) -> list[bool]:
        """Return whether each port's link is up. The call does not delay the switch."""
        return self._switch.links()

    def ring_of(self, port: int, queue: int) -> int | None:
        """Return the engine's number of the ring that is queue `queue` of a port."""
        name = self.file.queues(list(self.file.ports)[port]).get(queue)
        return None if name is None else first_ring(self.file) + list(self.file.rings).index(name)

    def drain(self, timeout_s: float) -> bool:
        """Stop accepting frames, and wait until all frames have left; return whether they have."""
        self._stopping = True
        return self._switch.drain(timeout_s)

    def stop(self) -> None:
        """End the switch and drop its remaining packets."""
        self._switch.stop()

    def _check(self, changed: SwitchFile) -> None:
        """Raise ScenarioError for a change that requires a restart of the switch."""
        before, after = _fixed_part(self.file), _fixed_part(changed)
        for key in sorted(before | after):
            if before.get(key) != after.get(key):
                raise ScenarioError(
                    f"{key} cannot change while the switch runs; stop it and start it with the new "
                    f"file (what can: {CHANGEABLE})"
                )

    def _enter(self, before: SwitchFile, after: SwitchFile) -> None:
        """Apply all changes between the same two turns. If a table is full, raises ScenarioError
        and changes nothing."""
        changes, refusals = changes_between(before, after)
        if (refused := self._switch.apply(changes)) >= 0:
            self._switch.apply(changes_between(after, before)[0])
            raise ScenarioError(refusals[refused])

    def _ports(self, state: SwitchState) -> list[PortStatus]:
        return [
            PortStatus(
                name=name,
                device=port.device,
                is_up=found.device.is_up,
                frames=_counts(found.frames),
                device_counts=_counts(found.device),
                addresses=found.addresses,
            )
            for (name, port), found in zip(self.file.ports.items(), state.ports, strict=True)
        ]

    def _rings(self, state: SwitchState) -> list[RingStatus]:
        file = self.file
        of_ports = [
            (name, True, 0, port.packets, MOST_BYTES, 0)
            for name, port in file.ports.items()
            for _ in range(file.classes)
        ]
        of_rings = [
            (ring.port, False, ring.rate, ring.packets, ring.bytes, ring.ecn_threshold)
            for ring in file.rings.values()
        ]
        return [
            RingStatus(
                name=name,
                port=port,
                is_of_port=is_of_port,
                rate_bps=rate_bps,
                rate_owner=self._owners.get(name, ""),
                most_packets=most,
                packets=found.packets,
                bytes=found.bytes,
                most_bytes=most_bytes,
                mark_bytes=mark_bytes,
                counts=_counts(found.counters),
                waits=tuple(found.waits),
            )
            for name, (port, is_of_port, rate_bps, most, most_bytes, mark_bytes), found in zip(
                ring_names(file), of_ports + of_rings, state.rings, strict=True
            )
        ]


def _counts(report: Any) -> dict[str, int]:
    """Return the integer fields of a report from the engine, by name."""
    return {
        name: value
        for name in dir(report)
        if not name.startswith("_") and type(value := getattr(report, name)) is int
    }


def _empty_fields(switch: SwitchFile) -> dict[str, Any]:
    """Return the fields of a switch without rings, rules and fixed addresses."""
    addresses = switch.addresses.model_copy(update={"fixed": {}})
    fields = {name: getattr(switch, name) for name in type(switch).model_fields}
    return fields | {"rings": {}, "rules": {}, "addresses": addresses}


def _fixed_part(switch: SwitchFile) -> dict[str, Any]:
    """Return the keys, with values, that cannot change while the switch runs."""
    document = switch.model_dump(mode="json")
    del document["rules"], document["addresses"]["fixed"], document["title"]
    for port in document["ports"].values():
        del port["floods"], port["addresses"]
    flat = {f"addresses.{key}": value for key, value in document.pop("addresses").items()}
    for name, ring in document.pop("rings").items():
        flat |= {f"rings.{name}.{key}": ring[key] for key in ("port", "traffic_class")}
    return flat | document

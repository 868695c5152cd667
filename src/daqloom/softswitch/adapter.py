"""Rings of the ports of daqloom's own running software switch, through the requests of `daqloom
switch`."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from daqloom.base.words import printable
from daqloom.control.calls.operator import ask
from daqloom.device.adapter import AdapterError, AdapterOptions, FileName, PortBuffer, PortCount
from daqloom.device.credentials import Credentials
from daqloom.results.errors import MeasureError
from daqloom.softswitch.status import (
    SWITCH,
    Ask,
    Change,
    ForgetPeaks,
    Request,
    RingStatus,
    SwitchStatus,
)

KEYS = {
    "limit_packets": ("packets", ""),
    "limit_bytes": ("bytes", " B"),
    "ecn_bytes": ("ecn_threshold", " B"),
    "pace_bps": ("rate", " b/s"),
}
"""Field of a port's buffer → key of a ring in the switch's file, and the key's unit."""
_SAVED = TypeAdapter(dict[str, PortBuffer])


class SoftwareOptions(AdapterOptions):
    """Options of the adapter for a software switch."""

    address: Annotated[str, Field(max_length=200)] = ""
    """Address of the running switch, HOST:PORT; empty: the only switch of this user on this
    machine."""
    certificates: FileName = ""
    """Folder from `daqloom control certificates`; required unless the address is loopback."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.certificates and not self.address:
            raise ValueError("certificates needs address, host:port; give it, too")
        return self


class Software:
    """The running switch. A port's buffer applies to each of its rings with a match; the ring for
    other frames of the port cannot change while the switch runs."""

    Options = SoftwareOptions
    settable: ClassVar[frozenset[str]] = frozenset(KEYS)
    rounding: ClassVar[float] = 0.0

    def __init__(
        self, options: SoftwareOptions, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports = options, ports

    def __enter__(self) -> Self:
        self._rings()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def identity(self) -> str:
        """Return an identity that differs after each start of the switch."""
        if not (found := self._ask(Ask()).identity):
            raise self._other_version("without its identity")
        return f"switch {found}"

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return commands equivalent to `apply`, which sends all their keys in one request."""
        return [
            f"daqloom switch set {shlex.quote(f'{path}={json.dumps(value)}')}"
            for path, value in self._keys(desired).items()
        ]

    def save(self) -> dict[str, Any]:
        """Return limits and pace of each ring, by name."""
        rings = [ring for of_port in self._own_rings().values() for ring in of_port]
        return {ring.name: _buffer(ring).set_fields for ring in rings}

    def apply(self, desired: PortBuffer) -> None:
        """Set all rings between the same two turns of the switch."""
        self._change(self._keys(desired))

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return, for each port, the values that all its rings have in common."""
        return {
            port: PortBuffer(**_common([_buffer(ring).set_fields for ring in rings]))
            for port, rings in self._own_rings().items()
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore all rings between the same two turns of the switch."""
        try:
            buffers = _SAVED.validate_python(saved)
        except ValidationError:
            raise AdapterError(
                f"{self._where}: the saved values of its rings are damaged; restore them with "
                "`daqloom switch set`"
            ) from None
        keys: dict[str, Any] = {}
        for ring, buffer in buffers.items():
            keys |= _keys_of(ring, buffer)
        self._change(keys)

    def begin(self) -> None:
        """Reset the peaks."""
        self._ask(ForgetPeaks())

    def read(self) -> Mapping[str, PortCount]:
        """Return sums over all rings of each port: packets sent, packets dropped for lack of space
        or memory, and peaks (an upper bound of the port's peak)."""
        try:
            return {port: _count(rings) for port, rings in self._rings().items()}
        except (KeyError, ValueError):
            raise self._other_version("counters that are not its own") from None

    @property
    def _where(self) -> str:
        return f"software switch {self._options.address}".strip()

    def _keys(self, desired: PortBuffer) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        for rings in self._own_rings().values():
            for ring in rings:
                keys |= _keys_of(ring.name, desired)
        return keys

    def _own_rings(self) -> dict[str, list[RingStatus]]:
        all_rings = self._rings().items()
        found = {port: [r for r in rings if not r.is_of_port] for port, rings in all_rings}
        if bare := next((port for port in found if not found[port]), None):
            raise AdapterError(
                f"{bare} has no rings of its own, and those of ports cannot change while the "
                f'switch runs; give its file a ring with port = "{bare}"'
            )
        return found

    def _rings(self) -> dict[str, list[RingStatus]]:
        status = self._ask(Ask())
        known = [port.name for port in status.ports]
        if unknown := next((port for port in self._ports if port not in known), None):
            raise AdapterError(
                f"{unknown} is no port of the {self._where}; it has {', '.join(known[:8])}"
            )
        return {port: [ring for ring in status.rings if ring.port == port] for port in self._ports}

    def _change(self, keys: dict[str, Any]) -> None:
        status = self._ask(Change(keys=keys))
        if status.failure:
            raise AdapterError(f"{self._where} refuses the change: {status.failure}")

    def _ask(self, request: Request) -> SwitchStatus:
        options = self._options
        folder = Path(options.certificates) if options.certificates else None
        try:
            answer = ask(request.encode(), options.address or None, folder, SWITCH, options.timeout)
        except MeasureError as error:
            raise AdapterError(f"software switch: {printable(str(error))}") from None
        try:
            return SwitchStatus.model_validate_json(answer)
        except ValidationError:
            raise self._other_version("an invalid status") from None

    def _other_version(self, what: str) -> AdapterError:
        return AdapterError(
            f"{self._where} answers {what}; expected that of a switch of this version of daqloom: "
            "start it anew"
        )


def _buffer(ring: RingStatus) -> PortBuffer:
    """Return the limits and the pace of a ring."""
    return PortBuffer(
        limit_bytes=ring.most_bytes,
        limit_packets=ring.most_packets,
        ecn_bytes=ring.mark_bytes,
        pace_bps=ring.rate_bps,
    )


def _count(rings: list[RingStatus]) -> PortCount:
    """Return the sums of the counters of a port's rings. Raises ValueError if a ring holds more
    than it received, and KeyError if a counter is missing."""
    for ring in rings:
        if ring.packets > ring.counts["packets"] or ring.bytes > ring.counts["bytes"]:
            raise ValueError
    return PortCount(
        sent=sum(ring.counts["packets"] - ring.packets for ring in rings),
        sent_bytes=sum(ring.counts["bytes"] - ring.bytes for ring in rings),
        dropped=sum(ring.dropped for ring in rings),
        peak_bytes=sum(ring.counts["peak_bytes"] for ring in rings),
    )


def _keys_of(ring: str, buffer: PortBuffer) -> dict[str, Any]:
    """Return the keys of a ring for the given fields of a buffer."""
    return {
        f"rings.{ring}.{KEYS[name][0]}": f"{value}{KEYS[name][1]}" if KEYS[name][1] else value
        for name, value in buffer.set_fields.items()
    }


def _common(given: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entries that all dictionaries have in common."""
    first, *others = given
    return {k: v for k, v in first.items() if all(other[k] == v for other in others)}

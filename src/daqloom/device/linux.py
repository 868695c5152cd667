"""A Linux machine as a switch: the bfifo or pfifo of each port, by `tc`."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from daqloom.device.adapter import AdapterError, PortBuffer, PortCount
from daqloom.device.credentials import Credentials
from daqloom.device.tool import ToolOptions, answer, line

KINDS = {"bfifo": "limit_bytes", "pfifo": "limit_packets"}
KERNEL = ("cat", "/proc/sys/kernel/random/boot_id")
NAMESPACE = ("readlink", "/proc/self/ns/net")
BATCH = ("tc", "-batch", "-")
_IDENTITY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} net:\[[0-9]{1,20}\]")


class _Discipline(BaseModel):
    """Queueing discipline in the format of `tc -j -s`."""

    model_config = ConfigDict(strict=True)

    kind: str = Field(max_length=32, pattern=r"^[a-z0-9_]*$")
    handle: str = Field(default="0:", max_length=16, pattern=r"^[0-9a-f]*:$")
    parent: str = Field(default="", max_length=16, pattern=r"^[0-9a-f:]*$")
    options: dict[str, Any] = Field(default_factory=dict)
    bytes: int = Field(default=0, ge=0)
    packets: int = Field(default=0, ge=0)
    drops: int = Field(default=0, ge=0)

    @property
    def limit(self) -> int:
        """Limit of the discipline in bytes or packets; -1: unknown."""
        found = self.options.get("limit")
        return found if isinstance(found, int) else -1

    @property
    def place(self) -> str:
        """Place of the discipline below its device, as an argument of `tc`."""
        return f"parent {self.parent}" if self.parent else "root"


_LIST = TypeAdapter(list[_Discipline])


class Linux:
    """Linux machine as a switch; only the FIFOs of the named ports are changed."""

    Options = ToolOptions
    settable: ClassVar[frozenset[str]] = frozenset(KINDS.values())
    rounding: ClassVar[float] = 0.0

    def __init__(
        self, options: ToolOptions, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports = options, ports

    def __enter__(self) -> Self:
        for port in self._ports:
            self._disciplines(port)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def identity(self) -> str:
        """Return the identity of the kernel, valid until a reboot, and of its network namespace."""
        found = " ".join(
            answer(self._options, command, what="identity").strip()
            for command in (KERNEL, NAMESPACE)
        )
        if not _IDENTITY.fullmatch(found):
            raise AdapterError(
                f"identity: `{' '.join(KERNEL)}` and `{' '.join(NAMESPACE)}` print {found[:80]!r}; "
                "expected the identity of a Linux kernel and of its network namespace, by which "
                "two measurements of one switch exclude each other"
            )
        return f"kernel {found}"

    def commands(self, desired: PortBuffer) -> list[str]:
        """Return the command lines of a measurement without running them. The lines that set a
        queue depend on the port's present queue."""
        reading = [line(self._options, _show(port)) for port in self._ports]
        if not desired.set_fields:
            return reading
        kind, limit = _fifo(desired)
        batch = line(self._options, BATCH)
        return [
            *(line(self._options, command) for command in (KERNEL, NAMESPACE)),
            *reading,
            *(f"{batch}    # {kind} limit {limit} for {port}" for port in self._ports),
        ]

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return the `tc` lines that `apply` would run."""
        kind, limit = _fifo(desired)
        return [f"tc {_line(port, self._buffer(port), kind, limit)}" for port in self._ports]

    def save(self) -> dict[str, Any]:
        """Return kind, handle and limit of each FIFO."""
        return {
            port: {"kind": fifo.kind, "handle": fifo.handle, "limit": fifo.limit}
            for port, fifo in self._buffers().items()
        }

    def apply(self, desired: PortBuffer) -> None:
        """Set the limit of each FIFO."""
        kind, limit = _fifo(desired)
        self._do(_line(port, self._buffer(port), kind, limit) for port in self._ports)

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the limit of each FIFO."""
        found = self._buffers().items()
        return {port: PortBuffer(**{KINDS[fifo.kind]: fifo.limit}) for port, fifo in found}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore kind, handle and limit of each FIFO."""
        lines = []
        for port, old in saved.items():
            if old["kind"] not in KINDS or type(old["limit"]) is not int:
                raise AdapterError(f"{port}: its saved state is damaged")
            lines.append(_line(port, self._buffer(port), old["kind"], old["limit"], old["handle"]))
        self._do(lines)

    def begin(self) -> None:
        """Do nothing, because FIFOs do not record peaks."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of each FIFO."""
        found = self._buffers().items()
        return {port: PortCount(fifo.packets, fifo.bytes, fifo.drops) for port, fifo in found}

    def _buffers(self) -> dict[str, _Discipline]:
        return {port: self._buffer(port) for port in self._ports}

    def _do(self, lines: Any) -> None:
        answer(self._options, BATCH, "\n".join(lines) + "\n", what="configure")

    def _buffer(self, port: str) -> _Discipline:
        fifos = [each for each in self._disciplines(port) if each.kind in KINDS]
        if len(fifos) != 1:
            raise AdapterError(
                f"{port} has {len(fifos)} queues of the kinds bfifo and pfifo; expected one, such "
                f"as `tc qdisc add dev {port} root bfifo limit 100000` makes"
            )
        return fifos[0]

    def _disciplines(self, port: str) -> list[_Discipline]:
        output = answer(self._options, _show(port), what=port)
        try:
            return _LIST.validate_python(json.loads(output))
        except (ValidationError, ValueError, RecursionError):
            raise AdapterError(
                f"{port}: `tc` printed invalid JSON ({output.strip()[:60]!r}); expected "
                "that of iproute2 5 or newer"
            ) from None


def _show(port: str) -> tuple[str, ...]:
    return ("tc", "-j", "-s", "qdisc", "show", "dev", port)


def _fifo(desired: PortBuffer) -> tuple[str, int]:
    if desired.limit_bytes is not None and desired.limit_packets is not None:
        raise AdapterError(
            "a FIFO of Linux is limited by bytes or by packets, and both are given; leave one out"
        )
    if desired.limit_bytes is not None:
        return "bfifo", desired.limit_bytes
    return "pfifo", desired.limit_packets or 0


def _line(port: str, fifo: _Discipline, kind: str, limit: int, handle: str = "") -> str:
    """Return the `tc` line that gives `fifo` a new kind and limit."""
    if kind == fifo.kind and handle in ("", fifo.handle):
        return f"qdisc change dev {port} {fifo.place} handle {fifo.handle} {kind} limit {limit}"
    named = f"handle {handle} " if handle else ""
    return f"qdisc replace dev {port} {fifo.place} {named}{kind} limit {limit}"

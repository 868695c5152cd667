"""Interface of an adapter, which sets the buffers of a switch's ports, reads their counters, or
both; `under_test.py` decides what to set and when to restore it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, Self, runtime_checkable

from pydantic import AfterValidator, Field, ValidationInfo

from daqloom.base.words import printable
from daqloom.device.credentials import Credentials
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import open_regular
from daqloom.scenario.inputs import folder_of, resolve
from daqloom.scenario.quantities import PositiveSeconds
from daqloom.scenario.schema.part import Part


class AdapterError(MeasureError):
    """Failure of a device to answer or to comply. The message is one printable line without
    secrets."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


@dataclass(frozen=True)
class PortBuffer:
    """Limits of each port; None: left unchanged, or unknown."""

    limit_bytes: int | None = None
    limit_packets: int | None = None
    reserved_bytes: int | None = None
    """Bytes reserved for the port, besides its share of the pool."""
    shared_bytes: int | None = None
    """Bytes of the pool that all ports share."""
    alpha: float | None = None
    """Dynamic threshold: limit of a port as a multiple of the free part of the pool."""
    ecn_bytes: int | None = None
    """Backlog from which on packets are marked; 0: never."""
    pace_bps: int | None = None
    """Rate of sending; 0: the rate of the link."""

    @property
    def given(self) -> dict[str, int | float]:
        """Fields that are not None, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class PortCount:
    """Counters of a port since an arbitrary time."""

    sent: int
    sent_bytes: int
    dropped: int
    """Packets dropped for lack of buffer."""
    peak_bytes: int | None = None
    """Largest backlog since `begin`; None if the device does not report peaks."""


def _resolved(name: str, info: ValidationInfo) -> str:
    return str(resolve(os.path.expanduser(name), folder_of(info))) if name else ""


def check_regular(*names: str) -> None:
    """Raise OSError for a file that is not regular, before a library opens it; empty names are
    skipped."""
    for name in names:
        if name:
            open_regular(Path(name).expanduser()).close()


FileName = Annotated[str, Field(max_length=4096), AfterValidator(_resolved)]
"""Name of a file or folder, relative to the folder of the device's own file."""


class AdapterOptions(Part):
    """Keys of every adapter's table in a device's file."""

    timeout: PositiveSeconds = 10.0
    """Time within which the device must answer (s)."""


class Adapter(Protocol):
    """Connection to a device; a context. Entering changes nothing, and raises AdapterError without
    an answer."""

    Options: ClassVar[type[AdapterOptions]]
    """Keys of the adapter's table."""

    def __init__(
        self, options: Any, ports: Sequence[str], credentials: Credentials | None
    ) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


@runtime_checkable
class Configures(Adapter, Protocol):
    """Sets the buffers of the ports. All methods raise AdapterError."""

    settable: ClassVar[frozenset[str]]
    """Fields of `PortBuffer` that can be set."""
    rounding: ClassVar[float]
    """Relative rounding of values by the device; 0: exact."""

    def identity(self) -> str:
        """Return the unique identity of the device, such as its serial number or chassis ID, which
        does not depend on the address or command."""

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return the steps of `apply`, a line each in the device's own words, without any
        effect."""

    def save(self) -> dict[str, Any]:
        """Return the present configuration as JSON, for `restore`."""

    def apply(self, desired: PortBuffer) -> None:
        """Set each port."""

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the buffers that the device reports, by port."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore the result of `save`, also that of another process."""


@runtime_checkable
class Counts(Adapter, Protocol):
    """Reads counters of the ports. All methods raise AdapterError."""

    def begin(self) -> None:
        """Reset the peaks, if the device has any."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of all ports, by port."""


@runtime_checkable
class RunsPrograms(Protocol):
    """Adapter that runs programs named in the device's file."""

    def commands(self, desired: PortBuffer) -> list[str]:
        """Return the command lines of a measurement that sets `desired` or, if that is empty,
        reads counters; none is run."""

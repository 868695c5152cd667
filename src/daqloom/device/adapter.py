"""Interface of an adapter, which sets the buffers of a switch's ports, reads their counters, or
both; `under_test.py` decides which values to set, and when to restore the old ones."""

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
from daqloom.scenario.quantities import PositiveDuration
from daqloom.scenario.schema.part import Part


class AdapterError(MeasureError):
    """Error if a device does not answer or does not obey. The message is one printable line without
    secrets."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


@dataclass(frozen=True)
class PortBuffer:
    """Buffer limits of each port; None: left unchanged, or unknown."""

    limit_bytes: int | None = None
    limit_packets: int | None = None
    reserved_bytes: int | None = None
    """Bytes reserved for the port, in addition to its share of the pool."""
    shared_bytes: int | None = None
    """Bytes of the pool that all ports share."""
    alpha: float | None = None
    """Dynamic threshold: limit of a port as a multiple of the free part of the pool."""
    ecn_bytes: int | None = None
    """Backlog from which packets are ECN-marked (B); 0: never."""
    pace_bps: int | None = None
    """Sending rate limit (b/s); 0: the rate of the link."""

    @property
    def set_fields(self) -> dict[str, int | float]:
        """Fields that are not None, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class PortCount:
    """Counters of a port since an arbitrary start time."""

    sent: int
    sent_bytes: int
    dropped: int
    """Packets dropped for lack of buffer."""
    peak_bytes: int | None = None
    """Largest backlog since `begin`; None if the device does not report peaks."""


def _resolve(name: str, info: ValidationInfo) -> str:
    return str(resolve(os.path.expanduser(name), folder_of(info))) if name else ""


def check_regular(*names: str) -> None:
    """Raise OSError if a file is not a regular file, before a library opens it; empty names are
    skipped."""
    for name in names:
        if name:
            open_regular(Path(name).expanduser()).close()


FileName = Annotated[str, Field(max_length=4096), AfterValidator(_resolve)]
"""Name of a file or folder, relative to the folder of the device file."""


class AdapterOptions(Part):
    """Keys that the table of every adapter has in a device file."""

    timeout: PositiveDuration = 10.0
    """Time within which the device must answer (s)."""


class Adapter(Protocol):
    """Connection to a device; a context. Entering changes nothing, and raises AdapterError if the
    device does not answer."""

    Options: ClassVar[type[AdapterOptions]]
    """Class with the keys of the adapter's table."""

    def __init__(
        self, options: Any, ports: Sequence[str], credentials: Credentials | None
    ) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


@runtime_checkable
class Configures(Adapter, Protocol):
    """Adapter that sets the buffers of the ports. All methods raise AdapterError."""

    settable: ClassVar[frozenset[str]]
    """Names of the fields of `PortBuffer` that can be set."""
    rounding: ClassVar[float]
    """Relative error by which the device may round values; 0: exact."""

    def identity(self) -> str:
        """Return the unique identity of the device, such as its serial number or chassis ID; it
        must not depend on the address or command."""

    def plan(self, desired: PortBuffer) -> list[str]:
        """Return the steps of `apply` without executing them, one line each in the device's own
        language."""

    def save(self) -> dict[str, Any]:
        """Return the present configuration as JSON, as input of `restore`."""

    def apply(self, desired: PortBuffer) -> None:
        """Set each port."""

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return the buffers that the device reports, by port."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore a configuration from `save`, which another process may have called."""


@runtime_checkable
class Counts(Adapter, Protocol):
    """Adapter that reads the counters of the ports. All methods raise AdapterError."""

    def begin(self) -> None:
        """Reset the peak counters, if the device has any."""

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of all ports, by port name."""


@runtime_checkable
class RunsPrograms(Protocol):
    """Adapter that runs programs named in the device file."""

    def commands(self, desired: PortBuffer) -> list[str]:
        """Return the command lines of a measurement without running them: they set `desired` or, if
        it is empty, read counters."""

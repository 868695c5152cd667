"""What an adapter does: it sets the buffers of a switch's ports, or reads what these have counted,
or both. All else, what to set and when to set it back, is not an adapter's.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, Self, runtime_checkable

from pydantic import AfterValidator, Field, ValidationInfo

from daqloom.measure import MeasureError
from daqloom.measure.device.credentials import Credentials
from daqloom.scenario.files import open_regular
from daqloom.scenario.inputs import folder_of, resolve
from daqloom.scenario.part import Part
from daqloom.scenario.quantities import PositiveSeconds
from daqloom.words import printable


class AdapterError(MeasureError):
    """A device could not be reached, or has refused. The message is one sentence that begins with
    what it is about; it holds no secret, and is one line of printable characters whatever the
    device has said."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))


@dataclass(frozen=True)
class PortBuffer:
    """What each port may hold; None is left as it is, or is not told."""

    limit_bytes: int | None = None
    limit_packets: int | None = None
    reserved_bytes: int | None = None
    """Of its own, beside what it takes of the shared pool."""
    shared_bytes: int | None = None
    """The pool that all ports share."""
    alpha: float | None = None
    """Dynamic threshold: how much of the pool's free part a port may take."""
    ecn_bytes: int | None = None
    """Held bytes from which on packets are marked; 0: never."""
    pace_bps: int | None = None
    """Rate at which it sends; 0: that of the link."""

    @property
    def given(self) -> dict[str, int | float]:
        """What is not None, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class PortCount:
    """What a port has counted, from any moment on."""

    sent: int
    sent_bytes: int
    dropped: int
    """Packets that found no room."""
    peak_bytes: int | None = None
    """Most that it held since `begin`, where the device tells."""


def _resolved(given: str, info: ValidationInfo) -> str:
    return str(resolve(os.path.expanduser(given), folder_of(info))) if given else ""


def check_regular(*names: str) -> None:
    """Raise OSError for a file that a library would open and that is no regular one; an empty name
    is none."""
    for name in names:
        if name:
            open_regular(Path(name).expanduser()).close()


FileName = Annotated[str, Field(max_length=4096), AfterValidator(_resolved)]
"""Name of a file or folder, from the folder of the device's own file on."""


class AdapterOptions(Part):
    """Keys that every adapter has, in its table of a device's file."""

    timeout: PositiveSeconds = 10.0
    """How long the device may take to answer (s)."""


class Adapter(Protocol):
    """A connection to a device: a context. Raises AdapterError on entering where there is no
    answer; then nothing has changed."""

    Options: ClassVar[type[AdapterOptions]]
    """The keys of its table."""

    def __init__(
        self, options: Any, ports: Sequence[str], credentials: Credentials | None
    ) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


@runtime_checkable
class Configures(Adapter, Protocol):
    """Sets the buffers of the ports. All methods raise AdapterError."""

    settable: ClassVar[frozenset[str]]
    """The fields of `PortBuffer` that it can set."""
    rounding: ClassVar[float]
    """By which share of a value the device may round it; 0: not at all."""

    def identity(self) -> str:
        """Return which device answers, the same by whichever address or command it is reached: a
        serial number, a chassis ID or the like, that no other device has."""

    def plan(self, wanted: PortBuffer) -> list[str]:
        """Return what `apply` would do, a line for each step in the device's own words, without
        doing it."""

    def save(self) -> dict[str, Any]:
        """Return the configuration as it is, as JSON: all that `restore` needs."""

    def apply(self, wanted: PortBuffer) -> None:
        """Set each port."""

    def applied(self) -> Mapping[str, PortBuffer]:
        """Return what the device says that each port has, by port."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the configuration back to what `save` has returned, also in another process."""


@runtime_checkable
class Counts(Adapter, Protocol):
    """Reads counters of the ports. All methods raise AdapterError."""

    def begin(self) -> None:
        """Set peaks back, where the device has any."""

    def read(self) -> Mapping[str, PortCount]:
        """Return what each port has counted, by port: all of them."""


@runtime_checkable
class RunsPrograms(Protocol):
    """An adapter that runs programs of its device's file."""

    def commands(self, wanted: PortBuffer) -> list[str]:
        """Return the command lines that a measurement runs which sets `wanted`, or with nothing
        given, which counts; none is run for it."""

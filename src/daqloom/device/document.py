"""File of a device: its ports, how they are set and read, and the limits of measurements."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from daqloom.scenario.addresses import IpNetwork
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import refusal
from daqloom.scenario.names import NodeName
from daqloom.scenario.quantities import BitRateOrNone, Duration
from daqloom.scenario.schema.part import Part
from daqloom.scenario.toml import read_toml

LARGEST_FILE_BYTES = 1 << 20
MOST_PORTS = 1024
T = TypeVar("T", bound=Part)


class Limits(Part):
    """Limits that protect a shared network."""

    rate: BitRateOrNone = 0
    """Limit on the total sending rate of all sources, which `measure.pacing` enforces and must then
    be given; "0 b/s": no limit (b/s)."""
    addresses: tuple[IpNetwork, ...] = Field(default=(), max_length=256, strict=False)
    """Networks to which the addresses of units must belong; none: no restriction."""


class DeviceFile(Part):
    """A device under test."""

    title: str = Field(default="", max_length=200)
    """One line that describes the device."""
    level: Literal["core", "tor", "leaf", "spine"] = "tor"
    """Level of the switch in the scenario's network; its buffer is that of
    `network.switch.LEVEL`."""
    ports: tuple[NodeName, ...] = Field(min_length=1, max_length=MOST_PORTS, strict=False)
    """Ports, by the device's own names, whose buffers are set and whose counters are read."""
    settle: Annotated[Duration, Field(le=3600)] = 1.0
    """Time until the device has applied a change (s)."""
    credentials: str = Field(default="", max_length=4096)
    """File of mode 0600 with user, password, token or key_file; default: the environment variables
    DAQLOOM_DEVICE_USER, DAQLOOM_DEVICE_PASSWORD and so on."""
    configure: dict[str, Any] = Field(default_factory=dict)
    """Adapter that sets the buffers, and its keys; none: buffers are not changed."""
    count: dict[str, Any] = Field(default_factory=dict)
    """Adapter that reads the counters, and its keys; none: counters are not read."""
    limits: Limits = Field(default_factory=Limits)
    """Limits of a measurement."""

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The tables of adapters that the file has."""
        return [table for table in (self.configure, self.count) if table]

    @model_validator(mode="after")
    def _check(self) -> "DeviceFile":
        if len(set(self.ports)) < len(self.ports):
            raise ValueError("ports: a port is named twice")
        for name in ("configure", "count"):
            table = getattr(self, name)
            if table and not isinstance(table.get("adapter"), str):
                raise ValueError(f'{name} has no adapter; expected one such as adapter = "linux"')
        if not self.configure and not self.count:
            raise ValueError(
                "neither configure nor count is given; with neither nothing is to be done"
            )
        return self


def load_device(path: str | PathLike[str]) -> DeviceFile:
    """Read the file of a device. Raises ScenarioError."""
    found = build(DeviceFile, read_toml(Path(path), LARGEST_FILE_BYTES), str(path))
    folder = Path(path).parent.absolute()
    if found.credentials:
        found.__dict__["credentials"] = str(folder / found.credentials)
    return found


def build(
    model: type[T], document: Mapping[str, Any], source: str, folder: Path | None = None
) -> T:
    """Return a table of a document, with file names relative to `folder`. Raises ScenarioError."""
    try:
        return model.model_validate(dict(document), context={"folder": folder})
    except ValidationError as error:
        raise refusal(error, source, {}, "", model) from None
    except RecursionError:
        raise ScenarioError(f"{source}: values are nested too deeply") from None

"""The scenario: one event-building system, described once for every method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from daqloom.scenario.event import Event
from daqloom.scenario.hosts import Builders, Sources
from daqloom.scenario.network import FRAME_OVERHEAD_BYTES, Links, Network
from daqloom.scenario.part import Part
from daqloom.scenario.quantities import SIZE, TIME, PositiveSeconds, Seconds
from daqloom.scenario.switches import Switch, Switches
from daqloom.scenario.transport import Transport

if TYPE_CHECKING:
    from daqloom.result import Result

MOST_CONNECTIONS = 4_000_000


class Run(Part):
    """[run]: how long, and with which random numbers."""

    duration: PositiveSeconds = Field(
        default=5.0, description="virtual time simulated, warm-up included (s)"
    )
    warmup: Seconds = Field(default=1.0, description="time at the start that no metric counts (s)")
    seed: int = Field(
        default=1, ge=0, lt=1 << 63, description="seed of all random streams; no unit"
    )


class Scenario(Part):
    """An event-building system; a file of this shape is what every method takes.

    Values are SI numbers: whole bytes, bits per second, seconds, hertz.
    """

    name: str = Field(
        default="",
        max_length=64,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="short name in results; by default the file's name",
    )
    title: str = Field(default="", max_length=200, description="one line for lists")
    description: str = Field(default="", max_length=10_000, description="what the system is")
    event: Event = Field(default_factory=Event, description="sizes and arrivals")
    sources: Sources = Field(default_factory=Sources, description="readout units")
    builders: Builders = Field(default_factory=Builders, description="builder units")
    network: Network = Field(default_factory=Network, description="frames")
    links: Links = Field(default_factory=Links, description="cables")
    switch: Switches = Field(default_factory=Switches, description="switches")
    transport: Transport = Field(default_factory=Transport, description="TCP")
    run: Run = Field(default_factory=Run, description="length and seed")

    @property
    def mss(self) -> int:
        """Payload of a full segment (B)."""
        return self.network.mtu - self.transport.header_bytes

    def content(self) -> dict[str, Any]:
        """All that bears on a result, as JSON has it: every key but name, title, description and
        seed; files by the digest of their content."""
        content = self.model_dump(mode="json", exclude={"name", "title", "description"})
        del content["run"]["seed"]
        event = content["event"]
        event["size_histogram"] = _digest(*(self.event.histogram or ()))
        event["trace"] = _digest(*((self.event.arrival_times,) if self.event.trace else ()))
        event["lhc"]["filling"] = _digest(self.event.lhc.pattern)
        return content

    def hash(self) -> str:
        """SHA-256 of `content`; the seed stands apart in results."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def with_overrides(self, overrides: Iterable[str] | Mapping[str, Any]) -> Scenario:
        """The same system with some keys changed.

        `overrides` are `["event.size=2 MB"]` or `{"event.size": "2 MB"}`. Raises ScenarioError.
        """
        from daqloom.scenario.load import override

        return override(self, overrides)

    def analyse(self) -> Result:
        """Closed forms; milliseconds. Raises ScenarioError where none applies."""
        from daqloom.analyse import analyse

        return analyse(self)

    def simulate(
        self,
        *,
        seed: int | None = None,
        pcap: Mapping[str, Path] | None = None,
        trace: Path | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Result:
        """Packet-level simulation; see `daqloom.simulate.simulate` for the arguments."""
        from daqloom.simulate import simulate

        return simulate(self, seed=seed, pcap=pcap, trace=trace, progress=progress)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_run()
        self._check_sizes()
        uplinks = self.links.uplink.count
        self._check_switch("switch.core", self.switch.core, self.sources.count + uplinks)
        self._check_switch("switch.tor", self.switch.tor, uplinks + self.builders.count)
        if self.transport.congestion == "dctcp" and not (
            self.switch.core.ecn_threshold or self.switch.tor.ecn_threshold
        ):
            raise ValueError(
                'transport.congestion = "dctcp" needs a switch that marks packets; set '
                'switch.tor.ecn_threshold, such as "100 kB"'
            )
        return self

    def _check_run(self) -> None:
        if self.run.warmup >= self.run.duration:
            raise ValueError(
                f"run.warmup = {TIME.format(self.run.warmup)} leaves nothing of run.duration = "
                f"{TIME.format(self.run.duration)} to measure; shorten the one or lengthen the "
                "other"
            )
        if self.sources.count * self.builders.count > MOST_CONNECTIONS:
            raise ValueError(
                f"sources.count × builders.count is more than {MOST_CONNECTIONS} connections; one "
                "rack can stand for a farm of independent racks"
            )

    def _check_sizes(self) -> None:
        if self.event.size < self.sources.count:
            raise ValueError(
                f"event.size = {SIZE.format(self.event.size)} is less than a byte for each of "
                f"sources.count = {self.sources.count} sources"
            )
        weights = self.event.share
        if weights != "equal" and len(weights) != self.sources.count:
            raise ValueError(
                f"event.share has {len(weights)} weights; expected one for each of sources.count = "
                f"{self.sources.count} sources"
            )
        windows = {"receive_window": self.transport.receive_window}
        if self.transport.congestion == "static":
            windows["static_window"] = self.transport.static_window
        if self.transport.tso_burst:
            windows["tso_burst"] = self.transport.tso_burst
        for key, window in windows.items():
            if window < self.mss:
                raise ValueError(
                    f"transport.{key} = {SIZE.format(window)} is smaller than one segment of "
                    f"{SIZE.format(self.mss)} (network.mtu less headers)"
                )

    def _check_switch(self, name: str, switch: Switch, connected: int) -> None:
        frame = self.network.mtu + FRAME_OVERHEAD_BYTES
        limits = {"buffer": switch.buffer, "port_limit": switch.port_limit}
        for key, limit in limits.items():
            if 0 < limit < frame:
                raise ValueError(
                    f"{name}.{key} = {SIZE.format(limit)} is smaller than one frame of "
                    f"{SIZE.format(frame)}; no full packet would ever pass"
                )
        if 0 < switch.ports < connected:
            raise ValueError(
                f"{name}.ports = {switch.ports} is less than the {connected} ports that the "
                "scenario connects to that switch; set it to as many, or to 0 for just those"
            )
        if switch.architecture == "shared-memory" and not switch.holds(frame, connected):
            raise ValueError(
                f"{name} holds no full frame of {SIZE.format(frame)} at one output, in whole cells "
                "and with the shared pool all free; enlarge buffer, dedicated or port_limit"
            )


def _digest(*content: Any) -> str:
    digest = hashlib.sha256()
    for part in content:
        digest.update(bytes(part))
    return digest.hexdigest() if content else ""

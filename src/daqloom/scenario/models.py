"""The scenario of a rack, described once for every method."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from daqloom.scenario.event import Event
from daqloom.scenario.hosts import Builders, Sources
from daqloom.scenario.network import FRAME_OVERHEAD_BYTES, Links, Network
from daqloom.scenario.quantities import SIZE
from daqloom.scenario.switches import Switch, Switches
from daqloom.scenario.system import System
from daqloom.scenario.transport import Transport

if TYPE_CHECKING:
    from daqloom.result import Result

MOST_CONNECTIONS = 4_000_000


class Scenario(System):
    """One rack of builders behind Ethernet switches; a farm is many such racks."""

    event: Event = Field(default_factory=Event, description="sizes and arrivals")
    sources: Sources = Field(default_factory=Sources, description="readout units")
    builders: Builders = Field(default_factory=Builders, description="builder units")
    network: Network = Field(default_factory=Network, description="frames")
    links: Links = Field(default_factory=Links, description="cables")
    switch: Switches = Field(default_factory=Switches, description="switches")
    transport: Transport = Field(default_factory=Transport, description="TCP")

    @property
    def mss(self) -> int:
        """Payload of a full segment (B)."""
        return self.network.mtu - self.transport.header_bytes

    def content(self) -> dict[str, Any]:
        """See `System.content`."""
        content = super().content()
        event = content["event"]
        event["size_histogram"] = _digest(*(self.event.histogram or ()))
        times = self.event.arrival_times  # None if a file is named that the arrivals do not use
        event["trace"] = _digest(*(() if times is None else (times,)))
        event["lhc"]["filling"] = _digest(self.event.lhc.pattern)
        return content

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
        self._check_connections()
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

    def _check_connections(self) -> None:
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

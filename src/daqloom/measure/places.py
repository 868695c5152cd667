"""Which unit has which place in the schedule of a scenario."""

from dataclasses import dataclass

from daqloom import _engine
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.models import Scenario
from daqloom.topology.schedule import DUMMY
from daqloom.topology.system import fabric_system


@dataclass(frozen=True)
class Places:
    """Which units read out, which build, and what they read; a unit's number is that of its
    slot."""

    readouts: list[int]
    """Unit with the readout unit of each slot of the schedule; -1: none."""
    builders: list[int]
    fragment_bytes: list[int]
    """Mean fragment size (bytes), by readout unit and stream."""
    streams: int
    """Streams of a readout unit. In DAQPIPE they travel as one fragment."""

    @property
    def units(self) -> int:
        """Number of processes of a run."""
        return len({unit for unit in (*self.readouts, *self.builders) if unit >= 0})


def places(scenario: Scenario) -> Places:
    """Return the places of units. Raises ScenarioError for a scenario that cannot be run live."""
    if scenario.building.protocol == "none":
        raise ScenarioError(
            'building.protocol = "none" does not build events; `daqloom measure` runs "pull", '
            '"shift" and "daqpipe"'
        )
    if scenario.flows:
        raise ScenarioError(
            f"flows.{min(scenario.flows)}: a measurement has no flows beside event building; leave "
            "[flows] out, or simulate the system"
        )
    if scenario.building.protocol == "pull":
        return _pull_places(scenario)
    if scenario.event.packing > _engine.MOST_MFP_FRAGMENTS:
        raise ScenarioError(
            f"event.packing = {scenario.event.packing} is more than the "
            f"{_engine.MOST_MFP_FRAGMENTS} "
            "fragments that a multi-fragment packet can count"
        )
    if scenario.building.barrier == "ideal":
        raise ScenarioError(
            'building.barrier = "ideal" exists only in simulation; use "tournament" or another '
            "barrier"
        )
    system = fabric_system(scenario)
    together = scenario.readout.streams if scenario.building.protocol == "daqpipe" else 1
    sizes = [
        round(sum(means) / scenario.event.packing)
        for means in _in_groups(system.mfp_bytes, together)
    ]
    if max(sizes) > _engine.LARGEST_MEAN_FRAGMENT_BYTES:
        raise ScenarioError(
            f"the mean fragment size is {max(sizes)} bytes, and a multi-fragment packet holds at "
            f"most {_engine.LARGEST_MEAN_FRAGMENT_BYTES}; use more and smaller fragments"
        )
    units = {host: unit for unit, host in enumerate(system.hosts)}
    units[DUMMY] = -1
    return Places(
        [units[host] for host in system.readouts.tolist()],
        [units[host] for host in system.builders.tolist()],
        sizes,
        scenario.readout.streams // together,
    )


def _pull_places(scenario: Scenario) -> Places:
    """Return the places of pull building, which has no schedule: slots only list the units."""
    system, event = fabric_system(scenario), scenario.event
    units = {host: unit for unit, host in enumerate(system.hosts)}
    readouts = [units[host] for host in system.readouts.tolist()]
    builders = [units[host] for host in system.builders.tolist()]
    shares = [1.0] * len(readouts) if event.share == "equal" else list(event.share)
    slots = max(len(readouts), len(builders))
    return Places(
        readouts + [-1] * (slots - len(readouts)),
        builders + [-1] * (slots - len(builders)),
        [round(event.size * share / sum(shares)) for share in shares],
        1,
    )


def _in_groups(sizes: list[int], length: int) -> list[list[int]]:
    return [sizes[i : i + length] for i in range(0, len(sizes), length)]

"""Which choices the methods can combine so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from daqloom.scenario.tables import Tables


def check_possible(scenario: Tables) -> None:
    """Raise ScenarioError for choices that no method can combine yet."""
    if choices := impossible(scenario):
        raise ScenarioError(f"{scenario.name}: {choices}")


def impossible(scenario: Tables) -> str:
    """Return a sentence on choices that cannot be combined yet; empty where all can."""
    network, protocol = scenario.network, scenario.building.protocol
    pulls, ethernet = protocol == "pull", network.technology == "ethernet"
    if pulls != ethernet:
        return (
            f'building.protocol = "{protocol}" over network.technology = "{network.technology}" is '
            f"not possible yet; expected {'ethernet' if pulls else 'infiniband'}"
        )
    shapes = ("rack",) if ethernet else ("fat-tree", "imported", "cables")
    if network.shape not in shapes:
        return (
            f'network.shape = "{network.shape}" with network.technology = "{network.technology}" '
            f"is not possible yet; expected {' or '.join(shapes)}"
        )
    kind = "tcp" if ethernet else "rdma"
    if scenario.transport.kind != kind:
        return (
            f'transport.kind = "{scenario.transport.kind}" over network.technology = '
            f'"{network.technology}" is not possible yet; expected {kind}'
        )
    if scenario.flows and protocol != "none":
        return (
            f'[flows] beside building.protocol = "{protocol}" is not possible yet; expected "none"'
        )
    if pulls and scenario.folded:
        return 'builders.folded = true with building.protocol = "pull" is not possible yet'
    return ""

"""A scenario of a fabric as closed forms see it, whatever its protocol."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from daqloom.analyse.fabric_link import Link
from daqloom.analyse.fabric_messages import Messages
from daqloom.analyse.fabric_traffic import Traffic, traffic

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario


@dataclass(frozen=True)
class View:
    """What all protocols have in common: cables, paths, messages."""

    scenario: FabricScenario

    @cached_property
    def messages(self) -> Messages:
        """What messages cost."""
        return Messages.of(self.scenario)

    @property
    def link(self) -> Link:
        """Any cable."""
        return self.messages.link

    @cached_property
    def traffic(self) -> Traffic:
        """Paths and slots."""
        return traffic(self.scenario)

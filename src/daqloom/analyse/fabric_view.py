"""A fabric scenario in the terms of the closed forms, for any protocol."""

from dataclasses import dataclass
from functools import cached_property

from daqloom.analyse.fabric_link import Link
from daqloom.analyse.fabric_messages import Messages
from daqloom.analyse.fabric_traffic import Traffic, traffic
from daqloom.scenario.models import Scenario


@dataclass(frozen=True)
class View:
    """The part common to all protocols: cables, paths, messages."""

    scenario: Scenario

    @cached_property
    def messages(self) -> Messages:
        """The cost of messages."""
        return Messages.of(self.scenario)

    @property
    def link(self) -> Link:
        """The link model of a cable."""
        return self.messages.link

    @cached_property
    def traffic(self) -> Traffic:
        """Paths and slots of the fabric."""
        return traffic(self.scenario)

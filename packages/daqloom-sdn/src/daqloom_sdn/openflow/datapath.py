"""State that all controllers of a switch share: flow table, statistics, generation of masters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.messages import FlowFlag, Role
from daqloom_sdn.openflow.statistics import Statistics
from daqloom_sdn.openflow.table import TABLE, FlowTable, Removed, duration


class Controller(Protocol):
    """A controller, as the others see it."""

    role: Role

    def notify(self, message: Record) -> None:
        """Send a message that answers no request."""


class Datapath:
    """State that all controllers of a switch share. `number`: its datapath ID; `links`: whether the
    link of each port is up."""

    def __init__(
        self,
        number: int,
        table: FlowTable,
        statistics: Statistics,
        links: Callable[[], list[bool]],
    ) -> None:
        self.number, self.table, self.statistics = number, table, statistics
        self._links, self._links_up = links, links()
        self.generation: int | None = None
        """Generation of the newest master."""
        self.sessions: list[Controller] = []

    def notify_removed(self, removed: list[Removed]) -> Iterator[None]:
        """Notify all controllers but slaves of removed entries, step by step: other work may run
        between two steps."""
        for each in removed:
            if each.entry.flags & FlowFlag.SEND_FLOW_REM:
                message = _flow_removed(each, self.table.clock())
                for session in self.sessions:
                    if session.role != Role.SLAVE:
                        session.notify(message)
                yield

    def look_at_links(self) -> None:
        """Notify all controllers of links that have come up or gone down since the last call."""
        before, self._links_up = self._links_up, self._links()
        if before != self._links_up:
            ports = self.statistics.port_descriptions()
            for was_up, is_up, port in zip(before, self._links_up, ports, strict=True):
                if was_up != is_up:
                    for session in self.sessions:
                        session.notify(messages.PORT_STATUS(port=port))

    def counts(self) -> dict[str, int]:
        """Return the numbers of controllers, entries and meters."""
        return {
            "controllers": len(self.sessions),
            "entries": len(self.table),
            "meters": len(self.table.meters.by_number),
        }


def _flow_removed(removed: Removed, now_s: float) -> Record:
    entry, age_s = removed.entry, now_s - removed.entry.since_s
    return messages.FLOW_REMOVED(
        cookie=entry.cookie,
        priority=entry.priority,
        reason=removed.reason,
        table_id=TABLE,
        **duration(age_s),
        idle_timeout=entry.idle_timeout_s,
        hard_timeout=entry.hard_timeout_s,
        packet_count=removed.packets,
        byte_count=removed.bytes,
        match=entry.records[0],
    )

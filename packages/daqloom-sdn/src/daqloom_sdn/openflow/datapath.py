"""State that all controllers of a switch share: flow table, statistics, master's generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from daqloom.softswitch.running import RunningSwitch
from daqloom_sdn.openflow import messages
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.messages import FlowFlag, Role
from daqloom_sdn.openflow.statistics import Statistics
from daqloom_sdn.openflow.table import TABLE, FlowTable, RemovedEntry, duration


class Controller(Protocol):
    """A controller, as seen by the datapath and other controllers."""

    role: Role

    def notify(self, message: Record) -> None:
        """Send a message that is not an answer to a request."""


class Datapath:
    """State that all controllers of a switch share. `clock` returns seconds that never decrease."""

    def __init__(self, running: RunningSwitch, clock: Callable[[], float] = time.monotonic) -> None:
        self.number = running.file.control.datapath
        self.table = FlowTable(running, clock)
        self.statistics = Statistics(running, self.table)
        self._links, self._links_up = running.links, running.links()
        self.generation: int | None = None
        """Generation of the newest master; None before the first one."""
        self.sessions: list[Controller] = []

    def notify_removed(self, removed: list[RemovedEntry]) -> Iterator[None]:
        """Notify all controllers, except slaves, of removed entries. Other work may run between two
        steps of the iterator."""
        for each in removed:
            if each.entry.message.flags & FlowFlag.SEND_FLOW_REM:
                message = _flow_removed(each, self.table.clock())
                for session in self.sessions:
                    if session.role != Role.SLAVE:
                        session.notify(message)
                yield

    def notify_links(self) -> None:
        """Notify all controllers of links that went up or down since the last call."""
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


def _flow_removed(removed: RemovedEntry, now_s: float) -> Record:
    return messages.FLOW_REMOVED(
        **removed.entry.fields,
        **duration(now_s - removed.entry.since_s),
        reason=removed.reason,
        table_id=TABLE,
        packet_count=removed.packets,
        byte_count=removed.bytes,
    )

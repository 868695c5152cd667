"""What all controllers of a switch share: its flow table, its statistics, and who is its master."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from pyof.v0x04.asynchronous.flow_removed import FlowRemoved
from pyof.v0x04.asynchronous.port_status import PortReason, PortStatus
from pyof.v0x04.controller2switch.common import ControllerRole
from pyof.v0x04.controller2switch.flow_mod import FlowModFlags

from daqloom.softswitch.openflow.statistics import Statistics
from daqloom.softswitch.openflow.table import TABLE, FlowTable, Removed, duration


class Controller(Protocol):
    """One of them, as all others see it."""

    role: ControllerRole

    def tell(self, packed: bytes) -> None:
        """Send a message, packed, that answers none."""


class Datapath:
    """What all controllers of a switch share. `number`: by which they know it; `links`: whether
    that of each port is up."""

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
        """Of the newest master."""
        self.sessions: list[Controller] = []

    def notify_removed(self, removed: list[Removed]) -> Iterator[None]:
        """Notify all controllers that may change the switch of removed entries, step by step: other
        work may run between two steps."""
        for each in removed:
            if each.entry.flags & FlowModFlags.OFPFF_SEND_FLOW_REM:
                packed = _flow_removed(each, self.table.clock()).pack()
                for session in self.sessions:
                    if session.role != ControllerRole.OFPCR_ROLE_SLAVE:
                        session.tell(packed)
                yield

    def look_at_links(self) -> None:
        """Tell all controllers of ports whose link has come or gone since it was looked at."""
        before, self._links_up = self._links_up, self._links()
        if before != self._links_up:
            ports = self.statistics.port_descriptions()
            for was_up, is_up, port in zip(before, self._links_up, ports, strict=True):
                if was_up != is_up:
                    packed = PortStatus(reason=PortReason.OFPPR_MODIFY, desc=port).pack()
                    for session in self.sessions:
                        session.tell(packed)

    def counts(self) -> dict[str, int]:
        """Return what there is of OpenFlow."""
        return {
            "controllers": len(self.sessions),
            "entries": len(self.table),
            "meters": len(self.table.meters.by_number),
        }


def _flow_removed(removed: Removed, now_s: float) -> FlowRemoved:
    entry, age_s = removed.entry, now_s - removed.entry.since_s
    return FlowRemoved(
        cookie=entry.cookie,
        priority=entry.priority,
        reason=removed.reason,
        table_id=TABLE,
        **duration(age_s),
        idle_timeout=entry.idle_timeout_s,
        hard_timeout=entry.hard_timeout_s,
        packet_count=removed.packets,
        byte_count=removed.bytes,
        match=entry.said[0],
    )

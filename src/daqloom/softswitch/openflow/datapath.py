"""What all controllers of a switch share: its flow table, its statistics, and who is its master."""

from __future__ import annotations

from typing import Any, Protocol

from pyof.v0x04.asynchronous.flow_removed import FlowRemoved
from pyof.v0x04.asynchronous.port_status import PortReason, PortStatus
from pyof.v0x04.controller2switch.common import ControllerRole
from pyof.v0x04.controller2switch.flow_mod import FlowModFlags

from daqloom.softswitch.openflow.statistics import Statistics
from daqloom.softswitch.openflow.table import TABLE, FlowTable, Removed, duration


class Controller(Protocol):
    """One of them, as all others see it."""

    role: ControllerRole

    def send(self, message: Any) -> None:
        """Send a message that answers none."""


class Datapath:
    """What all controllers of a switch share. `number`: by which they know it."""

    def __init__(self, number: int, table: FlowTable, statistics: Statistics) -> None:
        self.number, self.table, self.statistics = number, table, statistics
        self.generation: int | None = None
        """Of the newest master."""
        self.sessions: list[Controller] = []

    def tell_removed(self, removed: list[Removed]) -> None:
        """Tell all controllers that may change the switch of entries that are gone."""
        for each in removed:
            if each.entry.flags & FlowModFlags.OFPFF_SEND_FLOW_REM:
                for session in self.sessions:
                    if session.role != ControllerRole.OFPCR_ROLE_SLAVE:
                        session.send(_flow_removed(each, self.table.clock()))

    def links(self) -> list[Any]:
        """Return the ports as they are now."""
        return self.statistics.port_descriptions()

    def tell_links(self, before: list[Any], now: list[Any]) -> None:
        """Tell all controllers of ports whose link has come or gone."""
        for old, new in zip(before, now, strict=True):
            if old.state != new.state:
                for session in self.sessions:
                    session.send(PortStatus(reason=PortReason.OFPPR_MODIFY, desc=new))

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

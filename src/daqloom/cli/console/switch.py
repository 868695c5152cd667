"""A software switch as tables for terminals."""

from __future__ import annotations

from collections.abc import Iterator

from daqloom.base import lazy
from daqloom.base.words import plural
from daqloom.cli.console.columns import tables as fitted
from daqloom.scenario.quantities import RATE

with lazy.imports():
    from rich import console, table, text

    from daqloom.softswitch import status as softswitch_status


MOST_ROWS = 40
BAR = 20
"""Length of a bar that shows a ring's depth, in characters."""


def tables(status: softswitch_status.SwitchStatus, width: int) -> Iterator[table.Table]:
    """Yield tables of ports and used rings with their counters since the start."""
    head = ["port", "link", "in", "out", "flooded", "dropped", "missed", "buffers out"]
    rows = [
        [
            port.name,
            "up" if port.is_up else "down",
            f"{port.frames['packets']:,}",
            f"{port.device_counts['sent']:,}",
            f"{port.frames['flooded']:,}",
            f"{port.dropped:,}",
            f"{port.device_counts['missed']:,}",
            f"{port.device_counts['no_buffers']:,}",
        ]
        for port in status.ports
    ]
    yield from fitted(head, rows, width)
    head = ["ring", "port", "pace", "holds", "peak", "of", "in", "dropped"]
    rows = [
        [
            ring.name,
            ring.port,
            _pace(ring),
            f"{ring.packets:,}",
            f"{ring.counts['peak_packets']:,}",
            f"{ring.most_packets:,}",
            f"{ring.counts['packets']:,}",
            f"{ring.dropped:,}",
        ]
        for ring in _first(status)
    ]
    yield from fitted(head, rows, width, names=2)
    if status.openflow:
        names = ("controllers", "entries", "meters")
        head = ["controllers", "flow entries", "meters"]
        yield from fitted(head, [[f"{status.openflow[name]:,}" for name in names]], width)


def sentences(status: softswitch_status.SwitchStatus) -> Iterator[str]:
    """Yield a sentence for each state and failure of OpenFlow and OVSDB."""
    if status.openflow_failure:
        yield f"OpenFlow: {status.openflow_failure}"
    if (database := status.ovsdb) is not None:
        again = f" (begun again {plural(database.restarts, 'time')})" if database.restarts else ""
        yield f"OVSDB: {database.state}{again}"
        if database.failure:
            yield f"OVSDB: {database.failure}"
        yield from (f"OVSDB: {each}" for each in database.refusals)


def live_table(
    before: softswitch_status.SwitchStatus | None, now: softswitch_status.SwitchStatus, width: int
) -> console.Group:
    """Return tables of port rates since `before`, ring depths as bars, and drops."""
    took_s = now.time_s - before.time_s if before else now.time_s
    took_s = took_s or 1.0
    ports = []
    for number, port in enumerate(now.ports):
        old = before.ports[number] if before else None
        came = port.frames["bytes"] - (old.frames["bytes"] if old else 0)
        left = port.device_counts["sent_bytes"] - (old.device_counts["sent_bytes"] if old else 0)
        frames = port.frames["packets"] - (old.frames["packets"] if old else 0)
        ports.append(
            [
                port.name,
                "up" if port.is_up else "down",
                _rate(came, took_s),
                _rate(left, took_s),
                f"{frames / took_s:,.0f}",
                f"{port.dropped:,}",
            ]
        )
    rings = []
    for ring in _first(now):
        rings.append(
            [
                ring.name,
                _pace(ring),
                _bar(ring),
                f"{ring.packets:,}",
                f"{ring.counts['peak_packets']:,}",
                f"{ring.dropped:,}",
            ]
        )
    state = "drains" if now.stopping else "runs"
    return console.Group(
        text.Text(f"{now.title or 'switch'}: {state} since {now.time_s:,.0f} s"),
        *(text.Text(sentence) for sentence in sentences(now)),
        *fitted(["port", "link", "in", "out", "frames/s", "dropped"], ports, width),
        *fitted(["ring", "pace", "depth", "holds", "peak", "dropped"], rings, width),
    )


def _first(status: softswitch_status.SwitchStatus) -> list[softswitch_status.RingStatus]:
    """Return the rings to show, in their order: those with most drops, then highest peak depth."""
    order = {ring.name: place for place, ring in enumerate(status.rings)}
    found = sorted(status.rings, key=lambda ring: (-ring.dropped, -ring.counts["peak_packets"]))
    return sorted(found[:MOST_ROWS], key=lambda ring: order[ring.name])


def _pace(ring: softswitch_status.RingStatus) -> str:
    pace = RATE.format(ring.rate_bps) if ring.rate_bps else "-"
    return f"{pace} (OVSDB)" if ring.rate_owner else pace


def _rate(size: int, took_s: float) -> str:
    return f"{8 * size / took_s / 1e9:.3f} Gb/s"


def _bar(ring: softswitch_status.RingStatus) -> str:
    share = ring.packets / ring.most_packets
    full = min(BAR, round(share * BAR))
    if ring.packets and not full:
        full = 1
    return "█" * full + "·" * (BAR - full)

"""Feed of a run: one poll of its run control a second, shared by all viewers, none without one."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from daqloom.base.extras import MissingExtraError
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.record.meter import Bin, present
from daqloom.control.record.series import RUN, read_series
from daqloom.control.status import Status, UnitStatus, trouble
from daqloom.results.errors import MeasureError
from daqloom.softswitch.status import SwitchStatus

POLL_S = 1.0
MOST_VIEWERS = 32
MOST_PAST = 600
"""Totals that a new viewer receives."""
ENDS = (Phase.ENDING, Phase.ENDED)
ROUNDED = 5
"""Digits of the rates in a frame."""


def commands_of(status: Status) -> list[str]:
    """Return the commands of an operator that change something in this state."""
    if status.phase in ENDS or status.goal is Goal.ENDED:
        return []
    is_goal, is_stuck = status.goal is Goal.RUNNING, status.phase is Phase.ERROR
    found = ["configure", "start"] if not is_goal or is_stuck else []
    return [*found, *(["stop"] if is_goal else []), "reset", "include", "exclude", "exit"]


class Feed:
    """Frames for viewers. `ask` returns the state of the run, and `ask_switch` that of this
    machine's software switch; they raise MeasureError where there is none."""

    def __init__(
        self, ask: Callable[[], Status], ask_switch: Callable[[], SwitchStatus] | None = None
    ) -> None:
        self._ask, self._ask_switch = ask, ask_switch
        self._viewers: set[asyncio.Queue[str]] = set()
        self._past: deque[Mapping[str, Any]] = deque(maxlen=MOST_PAST)
        self._task: asyncio.Task[None] | None = None
        self._run = ""
        self.polls = 0

    @property
    def is_full(self) -> bool:
        """Whether no further viewer is accepted."""
        return len(self._viewers) >= MOST_VIEWERS

    async def frames(self) -> AsyncGenerator[str, None]:
        """Yield frames as JSON: first the past totals, then one a second. A viewer that reads too
        slowly misses frames."""
        queue: asyncio.Queue[str] = asyncio.Queue(2)
        self._viewers.add(queue)
        self._task = self._task or asyncio.create_task(self._poll())
        try:
            yield json.dumps({"past": list(self._past)})
            while True:
                yield await queue.get()
        finally:
            self._viewers.discard(queue)
            if not self._viewers and self._task:
                self._task.cancel()
                self._task = None

    async def _poll(self) -> None:
        while True:
            began_s = time.monotonic()
            frame = json.dumps(await self.frame(), separators=(",", ":"))
            self.polls += 1
            for queue in self._viewers:
                with suppress(asyncio.QueueFull):
                    queue.put_nowait(frame)
            await asyncio.sleep(max(0.1, POLL_S - (time.monotonic() - began_s)))

    async def frame(self) -> dict[str, Any]:
        """Return the present frame."""
        switch = None
        if self._ask_switch:
            with suppress(MeasureError):
                switch = _of_switch(await asyncio.to_thread(self._ask_switch))
        try:
            status = await asyncio.to_thread(self._ask)
        except MeasureError as error:
            return {"failure": str(error), "switch": switch}
        total = {
            "at": round(time.time(), 3),
            "time_s": round(status.time_s, 3),
            "members": sum(unit.member for unit in status.units),
            **_round(status.rates),
        }
        if status.run != self._run:
            self._run = status.run
            self._past.clear()
            self._past.extend(await asyncio.to_thread(_past_of, status))
        self._past.append(total)
        return {
            "run": status.run,
            "scenario": status.scenario,
            "phase": status.phase,
            "goal": status.goal,
            "epoch": status.epoch,
            "number": status.number,
            "failure": status.failure,
            "pending": status.pending,
            "refusal": [status.requests, status.refusal],
            "can": commands_of(status),
            "total": total,
            "losses": [*status.lost.items(), *status.counts.items()],
            "units": [_unit(unit) for unit in sorted(status.units, key=trouble)],
            "events": status.events,
            "connections": [
                [c.unit, c.to, c.segments_retransmitted, c.round_trip_us / 1e6]
                for c in status.connections
            ],
            "switch": switch,
        }


def _past_of(status: Status) -> list[Mapping[str, Any]]:
    """Return the last totals of a run's record, if it is on this machine."""
    if not status.record:
        return []
    found: list[Mapping[str, Any]] = []
    with suppress(MissingExtraError):
        columns, _ = read_series(Path(status.record), RUN, status.time_s - MOST_PAST)
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            phase, end_s = row.pop("phase"), row["time_s"] + row["width_s"]
            known = {name: float(value) for name, value in row.items() if value == value}
            rates, _ = present([Bin(row["time_s"], row["width_s"], known, Phase(phase), {})])
            when = {"at": round(status.began_s + end_s, 3), "time_s": round(end_s, 3)}
            found.append(when | {"members": int(known.get("members", 0)), **_round(rates)})
    return found[-MOST_PAST:]


def _round(rates: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.{ROUNDED}g}") for name, value in rates.items()}


def _unit(unit: UnitStatus) -> dict[str, Any]:
    return {
        **_round(unit.rates),
        "unit": unit.unit,
        "state": unit.state if unit.member else unit.standing,
        "member": unit.member,
        "excluded": "unit" if unit.is_excluded else "source" if unit.is_source_excluded else "",
        "host": unit.host,
        "pid": unit.pid,
        "reason": unit.reason,
    }


def _of_switch(status: SwitchStatus) -> dict[str, Any]:
    return {
        "title": status.title,
        "ports": [
            [p.name, "up" if p.is_up else "down", sum(p.frames.values()), p.dropped, p.missed]
            for p in status.ports
        ],
        "rings": [
            [r.name, r.port, r.rate_bps, r.packets, r.bytes, r.most_bytes, r.dropped]
            for r in status.rings
        ],
    }

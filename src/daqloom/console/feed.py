"""Feed of a run: one poll of its run control a second, shared by all viewers, none without one."""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any

from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.status import Status
from daqloom.results.errors import MeasureError
from daqloom.softswitch.status import SwitchStatus

POLL_S = 1.0
MOST_VIEWERS = 32
MOST_PAST = 600
"""Totals that a new viewer receives."""
ENDS = (Phase.ENDING, Phase.ENDED)
LOSSES = ("incomplete", "dropped", "discarded", "not_written")
WAITS: Mapping[str, tuple[str, ...]] = {
    "source": ("waiting_for_source_s",),
    "peer": ("waiting_for_network_s", "asking_s", "waiting_for_builder_s"),
    "barrier": ("in_barrier_s",),
    "consumer": ("waiting_for_consumer_s",),
}
"""Counters of the time that a unit waits, by cause."""
RATES = {"meps": "meps_delivered", "bytes": "mfp_bytes_built", "building": "building_s"}
Row = dict[str, float]


def allowed(status: Status) -> list[str]:
    """Return the commands of an operator that change something in this state."""
    if status.phase in ENDS or status.goal is Goal.ENDED:
        return []
    is_wanted, is_stuck = status.goal is Goal.RUNNING, status.phase is Phase.ERROR
    found = ["configure"] if status.goal is Goal.IDLE or is_stuck else []
    found += ["start"] if not is_wanted or is_stuck else []
    return [*found, *(["stop"] if is_wanted else []), "reset", "exit"]


class Meter:
    """Rates between successive states of a run."""

    def __init__(self) -> None:
        self._before: dict[int, Row] = {}
        self._key: tuple[str, float] = ("", 0.0)

    def rates(self, status: Status) -> dict[int, Row]:
        """Return the increases of each unit's counters a second since the last call; waits are
        shares of the time. Units that are new or restarted have none."""
        run, before_s = self._key
        passed_s = status.time_s - before_s if run == status.run else 0.0
        now = {unit.unit: _sums(unit.counters) for unit in status.units}
        found = {}
        if passed_s > 0:
            for unit, row in now.items():
                before = self._before.get(unit)
                if before and all(value >= before[name] for name, value in row.items()):
                    found[unit] = {n: (value - before[n]) / passed_s for n, value in row.items()}
        self._before, self._key = now, (status.run, status.time_s)
        return found


def _sums(counters: Mapping[str, float]) -> Row:
    row = {name: counters.get(counter, 0.0) for name, counter in RATES.items()}
    return row | {
        name: sum(counters.get(each, 0.0) for each in parts) for name, parts in WAITS.items()
    }


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
        self._meter = Meter()
        self._run = ""
        self.polls = 0

    @property
    def is_full(self) -> bool:
        """Whether no further viewer is accepted."""
        return len(self._viewers) >= MOST_VIEWERS

    async def frames(self) -> AsyncIterator[str]:
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
        rates = self._meter.rates(status)
        total = _total(status, rates)
        if status.run != self._run:
            self._run = status.run
            self._past.clear()
        self._past.append(total)
        return {
            "run": status.run,
            "scenario": status.scenario,
            "phase": status.phase,
            "goal": status.goal,
            "epoch": status.epoch,
            "failure": status.failure,
            "can": allowed(status),
            "total": total,
            "losses": _losses(status),
            "units": [_unit(unit, rates.get(unit.unit, {})) for unit in status.units],
            "events": status.events,
            "connections": [
                [c.unit, c.to, c.segments_retransmitted, c.round_trip_us / 1e6]
                for c in status.connections
            ],
            "switch": switch,
        }


def _total(status: Status, rates: Mapping[int, Row]) -> dict[str, Any]:
    sums: Counter[str] = Counter()
    for row in rates.values():
        sums.update(row)
    units = max(len(rates), 1)
    return {
        "at": round(time.time(), 3),
        "time_s": round(status.time_s, 3),
        "members": sum(unit.member for unit in status.units),
        "meps_hz": sums["meps"] if rates else None,
        "bps": 8 * sums["bytes"] if rates else None,
        "latency_s": sums["building"] / sums["meps"] if sums["meps"] else None,
        "waits": {name: sums[name] / units for name in WAITS} if rates else {},
    }


def _losses(status: Status) -> dict[str, float]:
    found = {
        f"MEPs {cause.replace('_', ' ')}": sum(
            unit.counters.get(f"meps_{cause}", 0) for unit in status.units
        )
        for cause in LOSSES
    }
    return found | {name: count for name, count in status.counts.items() if count}


def _unit(unit: Any, rates: Row) -> dict[str, Any]:
    waits = {name: rates[name] for name in WAITS if name in rates}
    worst = max(waits, key=lambda name: waits[name], default="")
    return {
        "unit": unit.unit,
        "state": unit.state,
        "standing": unit.standing,
        "member": unit.member,
        "host": unit.host,
        "pid": unit.pid,
        "reason": unit.reason,
        "meps_hz": rates.get("meps"),
        "bps": 8 * rates["bytes"] if rates else None,
        "wait": worst if waits and waits[worst] > 0.01 else "",
        "wait_share": waits.get(worst),
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

"""Faults by kind. Each begins when all units build events, and is over when its function returns.

unit       killed, stopped
group      all or half of the units killed or stopped; over tcp half of them without their links
control    killed in each phase of a run, with a unit or alone, and started again; stopped
network    over tcp: links down, units apart, units and their run control apart;
           over shm: connections to the run control reset
disk       full
consumer   killed, stalled, late
hook       fails or hangs before or after a transition
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from itertools import permutations

from companions import Consumers
from system import (
    CONSUMER_TIMEOUT_S,
    CONTROL,
    FAULT_TIMEOUT_S,
    HOOKS,
    PHASES,
    System,
    address,
)

from daqloom.results.errors import MeasureError

SHORTEST_S, LONGEST_S = 0.5, 4.0
"""Durations of faults: some are shorter than the fault timeout."""
KINDS = ("unit", "group", "control", "network", "disk", "consumer", "hook")


class Faults:
    """Faults by kind: `kinds[KIND][NAME]` breaks something, and returns what it has broken."""

    def __init__(self, system: System, consumers: Consumers, chance: random.Random) -> None:
        self._system, self._consumers, self._chance = system, consumers, chance
        self.kills = 0
        """Kills of processes that may have interrupted a packet."""
        network = {
            "link": self._links_down,
            "pair": self._pair_apart,
            "control-apart": partial(self._control_apart, everyone=False),
            "control-apart-from-all": partial(self._control_apart, everyone=True),
            "all-links": partial(self._links_down, share=1.0),
            "units-apart": self._units_apart,
        }
        group = {
            "all-killed": partial(self._units_killed, share=1.0),
            "all-stopped": partial(self._units_stopped, share=1.0),
            "half-killed": partial(self._units_killed, share=0.5),
            "half-stopped": partial(self._units_stopped, share=0.5),
        }
        if not system.network:
            network = {
                "connection": partial(self._connections_reset, everyone=False),
                "all-connections": partial(self._connections_reset, everyone=True),
            }
        else:
            group["half-without-links"] = partial(self._links_down, share=0.5)
        self.kinds: dict[str, dict[str, Callable[[], str]]] = {
            "unit": {"killed": self._units_killed, "stopped": self._units_stopped},
            "group": group,
            "control": {
                **{f"killed-{phase}": partial(self._control_killed, phase) for phase in PHASES},
                "stopped": self._control_stopped,
            },
            "network": network,
            "disk": {"full": self._disk_full},
            "consumer": {
                "killed": partial(self._consumer_killed, pause_s=0.0),
                "late": partial(self._consumer_killed, pause_s=2 * CONSUMER_TIMEOUT_S),
                "stalled": self._consumer_stalled,
            },
            "hook": {
                f"{how}-{when}-{what}": partial(self._hook, when, what, how)
                for when, what in HOOKS
                for how in ("fails", "hangs")
            },
        }
        self.sinks = {"disk": "file", "consumer": "user"}
        """Sink that a kind of fault needs."""

    def course(self, count: int, kinds: list[str], only: list[str]) -> list[tuple[str, str]]:
        """Return `count` faults in random order: equally many of each kind, and within a kind of
        each name."""
        choices = []
        for kind in kinds:
            names = [name for name in self.kinds[kind] if not only or name in only]
            self._chance.shuffle(names)
            choices += [[(kind, name) for name in names]] if names else []
        found = []
        for number in range(count):
            of_kind = choices[number % len(choices)]
            found.append(of_kind[number // len(choices) % len(of_kind)])
        self._chance.shuffle(found)
        return found

    def _pause(self, least_s: float = SHORTEST_S) -> float:
        pause_s = self._chance.uniform(least_s, max(LONGEST_S, 1.5 * least_s))
        time.sleep(pause_s)
        return pause_s

    def _some(self, share: float) -> list[int]:
        """Return a share of the units, at least one."""
        units = range(self._system.units)
        return sorted(self._chance.sample(units, max(1, round(share * len(units)))))

    # ---- units -------------------------------------------------------------------------------

    def _units_killed(self, share: float = 0.0) -> str:
        units = self._some(share)
        self._system.kill(units)
        self.kills += len(units)
        return f"{unit_names(units)} killed"

    def _units_stopped(self, share: float = 0.0) -> str:
        units, known = self._some(share), self._system.processes()
        with self._system.pause(known[unit] for unit in units if unit in known):
            pause_s = self._pause(FAULT_TIMEOUT_S if share == 0 else SHORTEST_S)
        self.kills += len(units)  # a unit that stands still for long may be killed
        return f"{unit_names(units)} stopped for {pause_s:.1f} s"

    # ---- run control -------------------------------------------------------------------------

    def _control_killed(self, phase: str) -> str:
        """Kill the run control when it enters a phase. Its supervisor starts it again, or it is
        continued from its folder after a gap, in which a unit may be killed."""
        system, by_hand = self._system, self._chance.random() < 0.5
        since = len(system.lines)
        if phase == "running":
            time.sleep(self._chance.uniform(0.0, 1.0))
        elif phase == "ready":
            with suppress(MeasureError):  # the request may be interrupted
                system.request("stop")
        else:
            victims = range(system.units) if phase == "waiting" else self._some(0.0)
            system.kill(victims)
            self.kills += len(victims)
            system.until_phase(phase, since)
        system.kill_control(with_supervisor=by_hand)
        what = f"run control killed in {phase}"
        if by_hand:
            if self._chance.random() < 0.5:
                units = self._some(0.0)
                system.kill(units)
                self.kills += 1
                what += f", {unit_names(units)} in the gap"
            what += f", continued after {self._pause():.1f} s"
            system.start_control()
        if phase == "ready":
            system.started_again()
        return what

    def _control_stopped(self) -> str:
        held = self._system.children()
        for pid in held:
            os.kill(pid, signal.SIGSTOP)
        pause_s = self._pause()
        for pid in held:
            os.kill(pid, signal.SIGCONT)
        return f"run control stopped for {pause_s:.1f} s"

    # ---- network -----------------------------------------------------------------------------

    def _links_down(self, share: float = 0.0) -> str:
        network, units = self._system.network, self._some(share)
        assert network
        with ExitStack() as stack:
            for unit in units:
                network.link(f"u{unit}", "down")
                stack.callback(network.link, f"u{unit}", "up")
            pause_s = self._pause()
        return f"links of {unit_names(units)} down for {pause_s:.1f} s"

    def _pair_apart(self) -> str:
        one, other = self._chance.sample(range(self._system.units), 2)
        return self._apart([(one, other), (other, one)], f"units {one} and {other}")

    def _units_apart(self) -> str:
        return self._apart(list(permutations(range(self._system.units), 2)), "all units")

    def _control_apart(self, *, everyone: bool) -> str:
        units = self._some(1.0 if everyone else 0.0)
        return self._apart([(unit, None) for unit in units], f"run control and {unit_names(units)}")

    def _apart(self, pairs: list[tuple[int, int | None]], what: str) -> str:
        """Let units not reach another one each, or the run control (None)."""
        network = self._system.network
        assert network
        for change in ("add", "delete"):
            for unit, to in pairs:
                network.blackhole(unit, CONTROL if to is None else address(to), change)
            if change == "add":
                pause_s = self._pause()
        return f"{what} apart for {pause_s:.1f} s"

    def _connections_reset(self, *, everyone: bool) -> str:
        """Reset TCP connections between units and their run control."""
        units = self._some(1.0 if everyone else 0.0)
        pids = {self._system.processes().get(unit) for unit in units}
        listed = subprocess.run(["ss", "-Htnp"], capture_output=True, text=True, check=True)
        ports = []
        for line in listed.stdout.splitlines():
            if any(f"pid={pid}," in line for pid in pids):
                ports.append(line.split()[3].rpartition(":")[2])
        for port in ports:
            subprocess.run(["ss", "-K", "sport", "=", port], capture_output=True, check=True)
        return f"{len(ports)} connections of {unit_names(units)} reset"

    # ---- ends --------------------------------------------------------------------------------

    def _disk_full(self) -> str:
        ballast = self._system.recording / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))
        pause_s = self._pause()
        ballast.unlink()
        return f"disk full for {pause_s:.1f} s"

    def _consumer_killed(self, pause_s: float) -> str:
        units = self._some(0.0)
        self._consumers.kill(units[0])
        self.kills += 1
        time.sleep(pause_s)
        self._consumers.start(units[0])
        return f"consumer of {unit_names(units)} killed, another one after {pause_s:.1f} s"

    def _consumer_stalled(self) -> str:
        units = self._some(0.0)
        with self._system.pause([self._consumers.pid(units[0])]):
            pause_s = self._pause(CONSUMER_TIMEOUT_S)
        return f"consumer of {unit_names(units)} stalled for {pause_s:.1f} s"

    def _hook(self, when: str, transition: str, how: str) -> str:
        """Stop and start the run with a broken hook: only one before the start refuses it."""
        system, refusal = self._system, ""
        with system.broken_hook(when, transition, how):
            system.request("stop")
            try:
                system.request("start")
            except MeasureError as error:
                refusal = str(error)
        if (when, transition) == ("before", "start"):
            if not refusal:
                raise RuntimeError("a start was not refused, though its hook had failed")
            system.request("start")
        elif refusal:
            raise RuntimeError(f"a start was refused: {refusal}")
        return f"hook {when} {transition} {how}: {refusal or 'the run goes on'}"


def unit_names(units: list[int] | range) -> str:
    return f"unit{'s' if len(units) > 1 else ''} {', '.join(map(str, units))}"

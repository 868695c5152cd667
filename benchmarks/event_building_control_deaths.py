"""Deaths of the run control (kill -9) under load, in every phase, and its returns.

`daqloom control` builds events on this machine. Each death hits a phase: the phase is provoked (by
a stop, a start, the death of a unit) and the run control is killed when its log enters the phase.
In half of the gaps a unit is killed too. The run control then continues from its folder. In the end
the recording is read, which is independent of the units' counters, and the books of the last state.

Prints JSON. Exit 1: something was recorded twice, damaged or not accounted for, units did not go on
within a gap, or joined late. With `--namespaces` the run control and its units are in two network
namespaces, with a cable between them (root only).

    python benchmarks/event_building_control_deaths.py --deaths 40 --seed 1
    python benchmarks/event_building_control_deaths.py --deaths 40 --transport tcp --namespaces
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

PHASES = ("running", "halting", "preparing", "connecting", "starting", "ready", "waiting")
ATTACHED_WITHIN_S = 5.0
GIVEN_UP_S = 120.0
SETTINGS = (
    "measure.heartbeat=100 ms",
    "measure.fault_timeout=1 s",
    "measure.sink=file",
    "event.rate=5 kHz",
    "event.packing=20",
)


class Run:
    """A run in a folder, under one run control after another."""

    def __init__(self, folder: Path, settings: Sequence[str], environment: dict[str, str]) -> None:
        self.folder, self.recording = folder / "run", folder / "recording"
        self.recording.mkdir()
        self.settings = [*settings, f"measure.sink_files={self.recording}"]
        self.environment = os.environ | environment
        self.control: subprocess.Popen[str]
        self.lines: list[str] = []
        self.changed = threading.Condition()

    def start(self) -> None:
        command = [sys.executable, "-m", "daqloom", "control", "up", "--folder", str(self.folder)]
        if not self.folder.exists():
            command += ["laptop", "--start"]
            for each in self.settings:
                command += ["--set", each]
        self.lines = []
        self.control = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            start_new_session=True,
        )
        threading.Thread(target=self._read, args=(self.control,), daemon=True).start()

    def _read(self, control: subprocess.Popen[str]) -> None:
        assert control.stdout
        for line in control.stdout:
            with self.changed:
                self.lines.append(line.rstrip())
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def command(self, text: str) -> None:
        assert self.control.stdin
        self.control.stdin.write(text + "\n")
        self.control.stdin.flush()

    def until(self, holds: Callable[[list[str]], bool], what: str) -> None:
        """Wait until the log of this run control satisfies a condition."""
        with self.changed:
            ended = self.control.poll
            if not self.changed.wait_for(
                lambda: holds(self.lines) or ended() is not None, GIVEN_UP_S
            ) or not holds(self.lines):
                raise RuntimeError(f"the run is not {what}:\n" + "\n".join(self.lines[-30:]))

    def until_phase(self, phase: str, since: int = 0) -> None:
        self.until(lambda lines: any(is_entry(each, phase) for each in lines[since:]), phase)

    def kill(self) -> None:
        os.kill(self.control.pid, signal.SIGKILL)
        self.control.wait()

    def state(self) -> Any:
        return json.loads((self.folder / "state.json").read_bytes())

    def processes(self) -> dict[int, int]:
        """Running processes of units, by unit."""
        return {
            row["units"][0]: row["pid"]
            for row in self.state()["processes"]
            if Path(f"/proc/{row['pid']}").exists()
        }

    def built(self) -> int:
        """Return what the pages of all units have counted as built."""
        from daqloom._engine import UnitCounters

        name = json.loads((self.folder / "run.json").read_bytes())["run"]
        total = 0
        for unit in range(4):
            with suppress(OSError):
                page = UnitCounters.open(f"/dev/shm/daqloom-run-{os.getuid()}-{name}", unit)
                total += page.read().meps_built or 0
        return total

    def close(self) -> None:
        with suppress(OSError, AttributeError):
            self.control.kill()
        with suppress(OSError, ValueError):
            for pid in self.processes().values():
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)


def in_own_network() -> None:
    """Start this program again in a network namespace of its own, with a loopback."""
    if "DEATHS_NETWORK" not in os.environ:
        own = f"ip link set lo up && exec {sys.executable} " + '"$@"'
        os.environ["DEATHS_NETWORK"] = "own"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", own, "sh", *sys.argv])


def is_entry(line: str, phase: str) -> bool:
    words = line.split(maxsplit=2)
    return len(words) == 3 and words[1] == "s" and words[2].split(":")[0] == phase


def whole(lines: list[str]) -> bool:
    """Whether all units build, according to the last entries of a log."""
    epochs = [line for line in lines if "preparing: epoch" in line]
    last = [line for line in lines if len(line.split()) > 2 and " s  " in line]
    phases = [line for line in last if line.split(maxsplit=2)[2].split(":")[0] in PHASES]
    is_running = bool(phases) and is_entry(phases[-1], "running")
    return is_running and (not epochs or "4 units" in epochs[-1])


def provoke(run: Run, phase: str, chance: random.Random) -> None:
    """Bring the run into a phase, and kill its run control there."""
    since = len(run.lines)
    if phase == "running":
        time.sleep(chance.uniform(0.0, 1.0))
    elif phase == "ready":
        run.command("stop")
        run.until_phase("ready", since)
    elif phase == "waiting":
        for pid in run.processes().values():
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        run.until_phase("waiting", since)
    else:
        victim = chance.choice(sorted(run.processes().values()))
        with suppress(ProcessLookupError):
            os.killpg(victim, signal.SIGKILL)
        run.until_phase(phase, since)
    run.kill()


def death(run: Run, phase: str, with_unit: bool, chance: random.Random) -> dict[str, Any]:
    provoke(run, phase, chance)
    known = run.processes()
    problems = []
    if with_unit and known:
        victim = chance.choice(sorted(known))
        with suppress(ProcessLookupError):
            os.killpg(known.pop(victim), signal.SIGKILL)
    elif phase == "running" and len(known) == 4:
        time.sleep(1.5)  # longer than the fault timeout
        before = run.built()
        time.sleep(0.5)
        if run.built() <= before:
            problems.append("the units did not go on")
    time.sleep(chance.uniform(0.1, 1.0))
    began_s = time.monotonic()
    run.start()
    run.until(
        lambda lines: any(
            is_entry(line, each)
            for line in lines
            for each in ("running", "ready", "halting", "waiting", "error")
        ),
        "attached",
    )
    attached_s = time.monotonic() - began_s
    joined = sum("has joined again" in line for line in run.lines)
    if attached_s > ATTACHED_WITHIN_S:
        problems.append(f"attached after {attached_s:.1f} s")
    regrouped = any("preparing" in line for line in run.lines)
    if phase == "running" and not with_unit and (regrouped or joined < len(known)):
        problems.append("the epoch did not continue")
    if phase == "ready":
        run.command("start")
    run.until(whole, "whole again")
    skips = sum("are skipped" in line for line in run.lines)
    if skips:
        print("\n".join(run.lines), file=sys.stderr)
    return {
        "phase": phase,
        "unit_killed": with_unit,
        "skips": skips,
        "attached_s": round(attached_s, 2),
        "joined_again": joined,
        "problems": problems,
    }


def books(run: Run) -> dict[str, Any]:
    """Return the accounts of the last stored state."""
    from daqloom._engine import RunControl
    from daqloom.control.persistence.store import STATE, StoredState
    from daqloom.control.protocol import wire
    from daqloom.measure.plan import plan_of
    from daqloom.scenario.schema.models import Scenario

    state = StoredState.model_validate_json((run.folder / STATE).read_bytes())
    about = json.loads((run.folder / "run.json").read_bytes())
    control = RunControl(plan_of(Scenario.model_validate(about["scenario"])).rules)
    control.resume(0.0, wire.record(state.snapshot))
    totals = [unit.tally.totals for unit in control.units]
    balance = control.balance()
    counted = {
        name: sum(getattr(each, f"meps_{name}") or 0 for each in totals)
        for name in ("built", "incomplete", "dropped", "discarded")
    }
    counted |= {"unfinished": balance.unfinished, "skipped": balance.skipped}
    return {"begun": control.next_mep, "twice": balance.twice, **counted}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deaths", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--phases", nargs="*", default=list(PHASES))
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    if given.namespaces:
        in_own_network()
    chance = random.Random(given.seed)
    course = [given.phases[number % len(given.phases)] for number in range(given.deaths)]
    chance.shuffle(course)
    settings = [*SETTINGS, f"measure.transport={given.transport}", *given.set]
    deaths: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environment = {"XDG_RUNTIME_DIR": str(folder)}
        if given.namespaces:
            import event_building_group_faults as apart

            spaces = apart.Namespaces()
            stack.callback(spaces.close)
            settings += apart.settings_of_units(spaces, folder)
            environment["PATH"] = f"{folder}:{os.environ['PATH']}"
        run = Run(folder, settings, environment)
        stack.callback(run.close)
        run.start()
        run.until(whole, "running")
        for number, phase in enumerate(course):
            deaths.append(death(run, phase, number % 2 == 1, chance))
            print(f"{number + 1} of {len(course)}: {deaths[-1]}", file=sys.stderr)
        since = len(run.lines)
        run.command("stop")
        run.until_phase("ready", since)
        run.kill()
        accounts = books(run)
        run.start()
        run.until_phase("ready")
        run.command("exit")
        run.control.wait(GIVEN_UP_S)
        report = verdict(given, run, deaths, accounts)
    print(json.dumps(report, indent=2))
    return 1 if report["problems"] else 0


def verdict(
    given: argparse.Namespace, run: Run, deaths: list[dict[str, Any]], accounts: dict[str, Any]
) -> dict[str, Any]:
    from daqloom.data import check_recording, recover

    problems = [problem for each in deaths for problem in each["problems"]]
    recovered = recover(run.recording)  # files of killed units
    recorded = check_recording([run.recording], generated=True)
    fates = {name: count for name, count in accounts.items() if name not in ("begun", "twice")}
    if accounts["twice"] or sum(fates.values()) != accounts["begun"]:
        problems.append(f"not all MEPs are accounted for: {accounts}")
    if recorded.duplicates:
        problems.append(f"{recorded.duplicates} (source, event) pairs were recorded twice")
    if recorded.fault_count:
        problems.append(f"{recorded.fault_count} places of the recording are damaged")
    if run.control.returncode != 0:
        problems.append(f"the run control ended with {run.control.returncode}")
    return {
        "seed": given.seed,
        "transport": given.transport,
        "namespaces": given.namespaces,
        "deaths": deaths,
        "slowest_attached_s": max(each["attached_s"] for each in deaths),
        "meps_accounted": accounts,
        "recorded_events": recorded.gaps.events,
        "recorded_twice": recorded.duplicates,
        "recorded_damage": recorded.fault_count,
        "recovered_files": len(recovered),
        "problems": problems,
    }


if __name__ == "__main__":
    sys.exit(main())

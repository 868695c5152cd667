"""The event builder for some time, every event checked, undisturbed or with faults.

Four folded nodes of `laptop` on this machine. Prints JSON: what was done, and what became of every
event. Exit 1: something was wrong, there twice, or not accounted for.

`--faults N`: at random times a unit is killed, stopped for seconds, or (over TCP, as root and in a
network namespace of its own) one connection between two units is cut.

`--rounds N`: faults of all units together, N of each kind, one after the other; see
event_building_group_faults.py. Root only.

    python benchmarks/event_building_soak.py --minutes 10
    python benchmarks/event_building_soak.py --minutes 10 --faults 20 --seed 1 \
        --transport libfabric:tcp
    python benchmarks/event_building_soak.py --rounds 10 --transport libfabric:tcp
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LATEST, EARLIEST = 0.95, 0.03
"""Faults happen within this share of the time."""
LONGEST_STOP_S = 5.0


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def connections(pids: list[int]) -> list[str]:
    """Filters of `ss` for TCP connections of which units have both ends: one line for each."""
    lines = subprocess.run(
        ["ss", "-tnpH", "state", "established"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ends = []
    for line in lines:
        fields = line.split()
        owner = re.search(r"pid=(\d+)", line)
        if owner and int(owner[1]) in pids:
            ends.append((fields[2].rpartition(":")[2], fields[3].rpartition(":")[2]))
    return [
        f"sport = :{here} and dport = :{there}"
        for here, there in sorted(ends)
        if (there, here) in ends
    ]


class Faults:
    """What is done to the units of one run, and when."""

    def __init__(self, run: subprocess.Popen[str], kinds: list[str], seed: int) -> None:
        self.run, self.kinds, self.random = run, kinds, random.Random(seed)
        self.done: list[dict[str, Any]] = []
        self.stopped: list[tuple[float, int]] = []

    def one(self, at_s: float) -> None:
        kind = self.random.choice(self.kinds)
        length_s = self.random.uniform(0.5, LONGEST_STOP_S)
        lucky = self.random.random()
        units = sorted(set(children(self.run.pid)) - {pid for _, pid in self.stopped})
        fault: dict[str, Any] = {"kind": kind, "at_s": round(at_s, 2)}
        if kind == "cut":
            cuttable = connections(units)
            if cuttable:
                which = cuttable[int(lucky * len(cuttable))]
                subprocess.run(["ss", "-K", "-tn", *which.split()], capture_output=True, check=True)
            fault["connections"] = len(cuttable)
        elif units:
            victim = units[int(lucky * len(units))]
            os.kill(victim, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
            fault["pid"] = victim
            if kind == "stop":
                fault["for_s"] = round(length_s, 2)
                self.stopped.append((time.monotonic() + length_s, victim))
        self.done.append(fault)

    def let_go(self, everything: bool = False) -> None:
        for due in [each for each in self.stopped if everything or each[0] <= time.monotonic()]:
            self.stopped.remove(due)
            if due[1] in children(self.run.pid):
                os.kill(due[1], signal.SIGCONT)


def in_own_network() -> None:
    """Starts this program again where cutting connections harms nobody; not if it may not."""
    if os.geteuid() != 0 or "SOAK_NETWORK" in os.environ or not shutil.which("unshare"):
        return
    own = f"ip link set lo up && exec {sys.executable} " + '"$@"'
    os.environ["SOAK_NETWORK"] = "own"
    os.execvp("unshare", ["unshare", "-n", "sh", "-c", own, "sh", *sys.argv])


def may_cut() -> bool:
    return os.environ.get("SOAK_NETWORK") == "own" and shutil.which("ss") is not None


def soak(given: argparse.Namespace) -> dict[str, Any]:
    duration_s = given.minutes * 60
    kinds = ["kill", "stop"] + (["cut"] if "tcp" in given.transport and may_cut() else [])
    command = [sys.executable, "-c", "from daqloom.__main__ import main; main()"]
    command += ["measure", "laptop", "--json", "--transport", given.transport]
    command += ["--duration", f"{duration_s} s", "--set", "measure.warmup=1 s"]
    for each in given.set:
        command += ["--set", each]
    run = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        faults = Faults(run, kinds, given.seed)
        begun = time.monotonic()
        due = sorted(
            faults.random.uniform(EARLIEST, LATEST) * duration_s for _ in range(given.faults)
        )
        while (due or faults.stopped) and run.poll() is None:
            time.sleep(0.05)
            faults.let_go()
            if due and time.monotonic() - begun >= due[0]:
                faults.one(due.pop(0))
        out, _ = run.communicate(timeout=duration_s + 300)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    return verdict(given, faults, run.returncode, out)


def verdict(given: argparse.Namespace, faults: Faults, code: int, out: str) -> dict[str, Any]:
    result = json.loads(out) if code == 0 else {}
    metrics = result.get("metrics", {})
    accounts = metrics.get("events_accounted", {})
    fates = {name: count for name, count in accounts.items() if name != "begun"}
    problems = []
    if code != 0:
        problems.append(f"the measurement ended with {code}")
    if metrics.get("events_wrong") != 0:
        problems.append(f"{metrics.get('events_wrong')} events were wrong")
    if metrics.get("events_repeated") != 0:
        problems.append(f"{metrics.get('events_repeated')} events came twice")
    if sum(fates.values()) != accounts.get("begun") or min(fates.values(), default=-1) < 0:
        problems.append(f"not all events are accounted for: {accounts}")
    if not accounts.get("built"):
        problems.append("no event was built")
    if len(faults.done) < given.faults:
        problems.append(f"{len(faults.done)} of {given.faults} faults were done")
    if given.faults == 0 and accounts.get("begun") != accounts.get("built"):
        problems.append(f"not all events were built, though nothing broke: {accounts}")
    if given.faults == 0 and metrics.get("units_lost") != 0:
        problems.append(f"{metrics.get('units_lost')} units were lost")
    return {
        "minutes": given.minutes,
        "transport": given.transport,
        "seed": given.seed,
        "faults": faults.done,
        "kinds_of_faults": faults.kinds,
        "regroupings": metrics.get("regroupings"),
        "units_lost": metrics.get("units_lost"),
        "events_accounted": accounts,
        "events_checked": metrics.get("events_checked"),
        "events_wrong": metrics.get("events_wrong"),
        "events_repeated": metrics.get("events_repeated"),
        "event_rate_hz": metrics.get("event_rate_hz"),
        "warnings": result.get("warnings"),
        "problems": problems,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--set", action="append", default=["measure.fault_timeout=2 s"])
    given = parser.parse_args()
    if given.rounds:
        in_own_network()
        from event_building_group_faults import rounds

        report = rounds(given.rounds, given.kinds, given.transport, given.seed, given.set)
        print(json.dumps(report, indent=2))
        return 1 if report["problems"] else 0
    if not given.faults:  # all is to be built, also where a consumer is kept from its processor
        given.set.insert(0, 'measure.when_full="wait"')
    if given.faults and "tcp" in given.transport:
        in_own_network()
    report = soak(given)
    print(json.dumps(report, indent=2))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

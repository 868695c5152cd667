"""Faults of all units together, and of the networks between them and their run control.

The run control lives in one network namespace, the units in another, with a cable between the two:
it sees nothing of them but what they tell it, as if they were on other machines. Each fault begins
when all units build events, and the next one when they do again. The units record what they build;
in the end the recording is read, which knows nothing of what units counted.

    kill-all       every unit is killed
    stop-all       every unit stands still for seconds, and goes on
    control-stop   the run control does
    control-cut    the cable is pulled for seconds
    data-cut       the units do not reach each other for seconds (not over shm)
    both-cut       both
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

KINDS = ("kill-all", "stop-all", "control-stop", "control-cut", "data-cut", "both-cut")
UNITS = 4
CONTROL, UNIT_SIDE, PORT = "10.0.0.1", "10.0.0.2", 7000
SHORTEST_S = 0.5
"""A fault that passes: the fault timeout is longer."""
SETTINGS = (
    f"measure.port={PORT}",
    "measure.heartbeat=100 ms",
    "measure.fault_timeout=1 s",
    "measure.warmup=100 ms",
    "measure.duration=10000 s",
    "measure.sink=file",
    "event.rate=5 kHz",
    "event.packing=20",
)
GIVEN_UP_S = 300.0


class Namespaces:
    """That of the units, and the cable to it. This process is in a namespace of its own already."""

    def __init__(self) -> None:
        # The process that holds it ends with its input.
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout
        self._holder.stdout.readline()
        pid = str(self._holder.pid)
        self.enter = ("nsenter", "--target", pid, "--net")
        self._ip("link", "add", "control", "type", "veth", "peer", "name", "units", "netns", pid)
        self._ip("address", "add", f"{CONTROL}/24", "dev", "control")
        self._ip("link", "set", "control", "up")
        self._ip("address", "add", f"{UNIT_SIDE}/24", "dev", "units", inside=True)
        for link in ("units", "lo"):
            self._ip("link", "set", link, "up", inside=True)

    def cable(self, state: str) -> None:
        self._ip("link", "set", "control", state)

    def loopback(self, state: str) -> None:
        """Over which units reach each other."""
        self._ip("link", "set", "lo", state, inside=True)

    def close(self) -> None:
        assert self._holder.stdin
        self._holder.stdin.close()
        self._holder.wait()

    def _ip(self, *words: str, inside: bool = False) -> None:
        subprocess.run([*(self.enter if inside else ()), "ip", *words], check=True)


def settings_of_units(spaces: Namespaces, folder: Path) -> list[str]:
    """Make certificates, and a program `ssh` in `folder` that starts units in their namespace;
    return the keys of the run."""
    from daqloom.control.calls.certificates import make_certificates

    make_certificates(folder / "certificates", [CONTROL])
    ssh = folder / "ssh"  # ssh OPTIONS -- HOST COMMAND
    ssh.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
        f'exec {" ".join(spaces.enter)} sh -c "exec $3"\n'
    )
    ssh.chmod(0o755)
    return [
        "measure.launch=ssh",
        'measure.hosts=["units"]',
        f"measure.bind={CONTROL}",
        f"measure.certificates={folder / 'certificates'}",
    ]


class Run:
    """`daqloom measure` with its units in the other namespace."""

    def __init__(self, spaces: Namespaces, folder: Path, transport: str, more: Sequence[str]):
        self.spaces, self.folder = spaces, folder
        self.recording = folder / "recording"
        self.recording.mkdir()
        self.certificates = folder / "certificates"
        settings = [
            *SETTINGS,
            *settings_of_units(spaces, folder),
            f"measure.transport={transport}",
            f"measure.sink_files={self.recording}",
            *more,
        ]
        command = [sys.executable, "-c", "from daqloom.__main__ import main; main()"]
        command += ["measure", "laptop", "--json"]
        for each in settings:
            command += ["--set", each]
        self.errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
            start_new_session=True,
        )

    def units(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def steer(self, command: str, unit: int | None = None) -> Any:
        from daqloom.control.status import Request, steer
        from daqloom.results.errors import MeasureError

        with suppress(MeasureError):  # it has not begun to listen, or is cut off
            request = Request(command=command, unit=unit)  # type: ignore[arg-type]
            return steer(request, f"{CONTROL}:{PORT}", self.certificates)
        return None

    def until_whole(self, after_epoch: int) -> int:
        """Until all units build in an epoch; which. Lost ones are brought back at once: the pauses
        that grow with each loss are not what is looked at."""
        deadline = time.monotonic() + GIVEN_UP_S
        while self.process.poll() is None and time.monotonic() < deadline:
            status = self.steer("status")
            running = status and status.phase == "running" and status.epoch > after_epoch
            if running and all(unit.member for unit in status.units):
                return int(status.epoch)
            for unit in status.units if status else ():
                if unit.standing in ("lost", "absent") and status.time_s > 10:
                    self.steer("reset", unit.unit)
            time.sleep(0.25)
        self.errors.seek(0)
        raise RuntimeError(f"the run is not whole again: {self.errors.read()[-2000:]}")

    def end(self) -> tuple[int, str]:
        os.kill(self.process.pid, signal.SIGINT)
        out, _ = self.process.communicate(timeout=GIVEN_UP_S)
        return self.process.returncode, out

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        self.errors.close()


@contextmanager
def fault(kind: str, run: Run) -> Iterator[None]:
    """The fault lasts as long as the body."""
    victims = [run.process.pid] if kind == "control-stop" else run.units()
    if kind == "kill-all":
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        yield
        return
    if kind in ("stop-all", "control-stop"):
        for pid in victims:
            os.kill(pid, signal.SIGSTOP)
    if kind in ("control-cut", "both-cut"):
        run.spaces.cable("down")
    if kind in ("data-cut", "both-cut"):
        run.spaces.loopback("down")
    yield
    if kind in ("stop-all", "control-stop"):
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    if kind in ("data-cut", "both-cut"):
        run.spaces.loopback("up")
    if kind in ("control-cut", "both-cut"):
        run.spaces.cable("up")


def rounds(
    each: int,
    kinds: Sequence[str],
    transport: str,
    longest_s: float,
    seed: int,
    more: Sequence[str],
) -> dict[str, Any]:
    """`each` faults of every kind; the report."""
    chance = random.Random(seed)
    over_network = [kind for kind in KINDS if transport != "shm" or "data" not in kind]
    course = [kind for kind in kinds or over_network for _ in range(each)]
    chance.shuffle(course)
    done: list[dict[str, Any]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no unit is left behind
    spaces = Namespaces()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(spaces, Path(folder), transport, more)
        try:
            epoch = run.until_whole(0)
            for kind in course:
                length_s = chance.uniform(SHORTEST_S, longest_s)
                with fault(kind, run):
                    time.sleep(length_s)
                # A short one may pass unnoticed: the same epoch goes on.
                epoch = run.until_whole(epoch if kind == "kill-all" else epoch - 1)
                done.append({"kind": kind, "for_s": round(length_s, 2), "epoch_after": epoch})
                print(f"{len(done)} of {len(course)}: {kind}", file=sys.stderr)
                time.sleep(chance.uniform(0.2, 1.0))
            code, out = run.end()
            return verdict(transport, seed, done, code, out, run.recording)
        finally:
            run.close()
            spaces.close()


def verdict(
    transport: str, seed: int, done: list[dict[str, Any]], code: int, out: str, recording: Path
) -> dict[str, Any]:
    from daqloom.data import check_recording, recover

    recovered = recover(recording)  # what killed units left
    metrics = json.loads(out)["metrics"] if out.startswith("{") else {}
    accounts = metrics.get("events_accounted", {})
    fates = {name: count for name, count in accounts.items() if name != "begun"}
    recorded = check_recording([recording], generated=True)
    problems = []
    if code != 130:  # it is ended by Ctrl-C
        problems.append(f"the measurement ended with {code}")
    if sum(fates.values()) != accounts.get("begun") or min(fates.values(), default=-1) < 0:
        problems.append(f"not all events are accounted for: {accounts}")
    if metrics.get("events_repeated"):
        problems.append(f"{metrics['events_repeated']} events came twice")
    if recorded.duplicates:
        problems.append(f"{recorded.duplicates} (source, event) pairs were recorded twice")
    if recorded.fault_count:
        problems.append(f"{recorded.fault_count} places of the recording are damaged")
    return {
        "transport": transport,
        "seed": seed,
        "faults": done,
        "regroupings": metrics.get("regroupings"),
        "units_lost": metrics.get("units_lost"),
        "events_accounted": accounts,
        "recorded_mfps": recorded.mfps,
        "recorded_events": recorded.gaps.events,
        "recorded_twice": recorded.duplicates,
        "recorded_damage": recorded.fault_count,
        "recovered_files": len(recovered),
        "problems": problems,
    }

"""Runs with the engine: every event is checked, also if units are lost."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daqloom.data import check_recording, recover, unfinished_files
from support.children import children
from support.measure.transports import TRANSPORTS

pytestmark = pytest.mark.process

HUNG_S = 300
DAQLOOM = (sys.executable, "-c", "from daqloom.__main__ import main; main()")
SMALL = ("measure.heartbeat=100 ms", "measure.fault_timeout=2 s", "measure.warmup=200 ms")
BUFFERS = ("measure.stream_buffer=6 MB", "measure.output_buffer=6 MB")
PACKED = (*SMALL, "event.packing=20", *BUFFERS)

ENDLESS = "600 s"
FAULTLESS = ("--set", f"measure.fault_timeout={HUNG_S} s")
"""No unit is lost for lack of a processor."""
PACED = ("--set", "event.rate=20 kHz")
"""Recordings stay small, and waiting units leave their cores to others."""
LOADED = (
    *("--set", "event.rate=200 kHz", "--set", "event.fragment_size=300 B"),
    *("--set", "measure.output_buffer=300 kB"),
)
"""Sinks lag behind."""


class Live:
    """Process of `daqloom measure` with a scenario of `count` units."""

    def __init__(
        self,
        duration: str,
        *more: str,
        prefix: tuple[str, ...] = (),
        scenario: str = "laptop",
        count: int = 4,
    ) -> None:
        self._count = count
        keys = PACKED if scenario == "laptop" else SMALL
        sets = ["--json", *(part for each in keys for part in ("--set", each))]
        self._printed: list[str] = []
        self._news = threading.Condition()
        here, there = os.pipe()
        self.process = subprocess.Popen(
            [*prefix, *DAQLOOM, "measure", scenario, "--duration", duration, *sets, *more],
            stdout=subprocess.PIPE,
            stderr=there,
            text=True,
            start_new_session=True,
        )
        os.close(there)
        self._listener = threading.Thread(target=self._listen, args=(here,), daemon=True)
        self._listener.start()

    def _listen(self, end: int) -> None:
        with open(end, errors="replace") as lines:
            for line in lines:
                with self._news:
                    self._printed.append(line)
                    self._news.notify_all()

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
        self._listener.join(HUNG_S)

    def units(self) -> list[int]:
        return children(self.process.pid)

    def wait_for(self, what: Callable[[], bool]) -> None:
        """Check at each printed line, and ten times a second."""
        deadline = time.monotonic() + HUNG_S
        while not what():
            assert self.process.poll() is None, self.log()[-2000:]
            assert time.monotonic() < deadline
            with self._news:
                self._news.wait(0.1)

    def building(self) -> list[int]:
        """The units, once they build events."""
        self.wait_for(self.is_whole)
        return self.units()

    def is_whole(self) -> bool:
        """Whether all units build events, since a unit was lost or left out."""
        since = re.split("is lost|preparing", self.log())[-1]
        return f"{self._count} of {self._count} units running" in since

    def lost(self) -> set[int]:
        """Units that were lost so far."""
        return {int(unit) for unit in re.findall(r"unit (\d+) is lost", self.log())}

    def log(self) -> str:
        with self._news:
            return "".join(self._printed)

    def result(self, code: int = 0) -> dict:
        out, _ = self.process.communicate(timeout=HUNG_S)
        self._listener.join(HUNG_S)
        assert self.process.returncode == code, self.log()[-2000:]
        return json.loads(out)

    def metrics(self) -> dict:
        return self.result()["metrics"]

    def metrics_once_whole(self) -> dict:
        """Metrics until all units build events again, when Ctrl-C ends the run."""
        self.wait_for(self.is_whole)
        os.kill(self.process.pid, signal.SIGINT)
        return self.result(code=130)["metrics"]


def expect_accounted(metrics: dict) -> dict[str, int]:
    accounts = metrics["events_accounted"]
    fates = {fate: count for fate, count in accounts.items() if fate != "begun"}
    assert metrics.get("events_wrong", 0) == 0
    assert min(fates.values()) >= 0
    assert sum(fates.values()) == accounts["begun"]
    # On a busy machine some units may always be lost.
    assert accounts["built"] + accounts["incomplete"] > 0
    return accounts


def expect_went_on(metrics: dict, *, lost: int = 1) -> None:
    expect_accounted(metrics)
    assert metrics["regroupings"] >= 1
    assert metrics["units_lost"] >= lost


@TRANSPORTS
def test_every_event_of_a_short_run_is_right(transport: str) -> None:
    with Live("1 s", "--transport", transport, *FAULTLESS) as run:
        metrics = run.metrics()
    accounts = expect_accounted(metrics)
    assert metrics["units_lost"] == 0
    assert metrics["events_checked"] > 0
    assert accounts["incomplete"] == accounts["dropped"] == 0
    assert accounts["unfinished"] == 0


@TRANSPORTS
@pytest.mark.parametrize(
    ("scenario", "more"),
    [
        ("laptop", ()),
        ("daqpipe-laptop", ("--set", "building.mode=push")),
        ("daqpipe-laptop", ("--set", "building.mode=pull")),
    ],
    ids=["shift", "daqpipe push", "daqpipe pull"],
)
def test_a_killed_unit_is_left_out_and_comes_back(scenario, more, transport) -> None:
    with Live(ENDLESS, *PACED, *more, "--transport", transport, scenario=scenario) as run:
        victim = run.building()[1]
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: victim not in run.units() and len(run.units()) == 4)
        metrics = run.metrics_once_whole()
    expect_went_on(metrics)


@TRANSPORTS
@pytest.mark.parametrize(
    ("kind", "assignment"),
    [
        ("event manager", "least-busy"),
        ("readout unit", "least-busy"),
        ("builder unit", "least-busy"),
        ("builder unit", "round-robin"),
    ],
)
def test_pull_building_goes_on_without_a_killed_unit(kind, assignment, transport) -> None:
    few = ("--set", "readout.units=3", "--set", "builders.units=2", "--transport", transport)
    rules = ("--set", f"building.assignment={assignment}")
    with Live(ENDLESS, *few, *rules, scenario="laptop-pull", count=5) as run:
        victim = run.building()[{"event manager": 0, "readout unit": 1, "builder unit": 3}[kind]]
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: victim not in run.units() and len(run.units()) == 5)
        metrics = run.metrics_once_whole()
    expect_went_on(metrics)


EVENTS_IN_A_MEP = 20


def expect_recorded_once(folder: Path, accounts: dict[str, int], *, killed: int = 0) -> None:
    """Check the files, with those that killed units left. Each of these may have been writing a
    MEP, which is not counted as processed."""
    recover(folder)
    recording = check_recording([folder], generated=True)
    assert recording.is_right, recording.record()
    more = recording.gaps.events - accounts["built"] - accounts["incomplete"]
    assert 0 <= more <= killed * EVENTS_IN_A_MEP


@TRANSPORTS
@pytest.mark.parametrize("fault", ["all killed", "all stopped", "run control stopped"])
def test_nothing_is_built_twice_when_all_units_are_lost_together(fault, transport, tmp_path):
    recorded = ("--set", "measure.sink=file", "--set", f"measure.sink_files={tmp_path}")
    rate = LOADED if fault == "all killed" else PACED
    is_control = fault == "run control stopped"
    duration = "6 s" if is_control else ENDLESS
    with Live(duration, "--transport", transport, *recorded, *rate) as run:
        units = run.building()
        if fault == "all killed":
            for unit in units:
                os.kill(unit, signal.SIGKILL)
            run.wait_for(lambda: run.lost() == {0, 1, 2, 3})
        else:
            victims = units if fault == "all stopped" else [run.process.pid]
            for pid in victims:
                os.kill(pid, signal.SIGSTOP)
            over = time.monotonic() + 3  # longer than the fault timeout
            if fault == "all stopped":
                run.wait_for(lambda: run.lost() == {0, 1, 2, 3})
            else:
                run.wait_for(lambda: time.monotonic() > over)
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
        # A stopped run control loses none or all.
        metrics = run.metrics() if is_control else run.metrics_once_whole()
    accounts = expect_accounted(metrics)
    assert metrics.get("events_repeated", 0) == 0
    assert metrics["units_lost"] >= (0 if is_control else 4)
    expect_recorded_once(tmp_path, accounts, killed=metrics["units_lost"])


def test_a_stopped_unit_is_left_out_and_damages_nothing_when_it_goes_on() -> None:
    with Live(ENDLESS, *PACED) as run:
        victim = run.building()[2]
        os.kill(victim, signal.SIGSTOP)
        run.wait_for(lambda: bool(run.lost()))
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGCONT)
        metrics = run.metrics_once_whole()
    expect_went_on(metrics)


def test_a_replay_that_loops_is_checked_by_its_recording(tmp_path: Path) -> None:
    """A recording of another seed without indices: the sink expects its data, not generated
    ones."""
    recorded, replay = tmp_path / "recorded", ("--set", "measure.source=replay")
    generate = ("data", "generate", "laptop", "-o", str(recorded), "--mfps", "7", "--seed", "9")
    packed = [word for given in PACKED for word in ("--set", given)]
    subprocess.run([*DAQLOOM, *generate, *packed, "-q"], check=True, timeout=HUNG_S)
    replay += ("--set", f"measure.source_files={recorded}", *FAULTLESS)
    with Live("1 s", *replay) as run:
        metrics = run.metrics()
    assert metrics["events_wrong"] == 0
    assert metrics["events_checked"] > 2 * 7 * 20
    assert metrics["events_unchecked"] == 0


OWN_NETWORK = ("unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def can_cut() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "ss", "nsenter"))):
        return False
    tried = subprocess.run([*OWN_NETWORK, "ss", "-K", "-tn"], capture_output=True)
    return tried.returncode == 0


def test_units_whose_connection_is_cut_meet_again() -> None:
    if not can_cut():
        pytest.skip("connections can be cut by root only, in a network namespace of one's own")
    with Live(ENDLESS, *PACED, "--transport", "libfabric:tcp", prefix=OWN_NETWORK) as run:
        units = run.building()

        def ss(*words: str) -> str:
            command = ["nsenter", "-n", "-t", str(run.process.pid), "ss", "-tnpH", *words]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        def sockets(*kind: str) -> Iterator[tuple[str, list[str]]]:
            """Sockets of units: their owners, and the fields of `ss`."""
            for line in ss(*kind).splitlines():
                owner = re.search(r"pid=(\d+)", line)
                if owner and int(owner[1]) in units:
                    yield owner[1], line.split()

        def cut() -> None:
            """Cut all connections between two units."""
            owners = {}
            for owner, fields in sockets("state", "established"):
                here, there = (end.rpartition(":")[2] for end in fields[2:4])
                owners[here, there] = owner
            pairs = {end: {owners[end], owners[end[::-1]]} for end in owners if end[::-1] in owners}
            for here, there in pairs:
                if pairs[here, there] == next(iter(pairs.values())):
                    ss("-K", "sport", "=", f":{here}", "and", "dport", "=", f":{there}")

        def listeners() -> set[str]:
            """Listeners, which differ between epochs."""
            return {fields[3] for _, fields in sockets("-l")}

        first = listeners()

        def has_regrouped() -> bool:
            """Cut again: without data under way, libfabric reconnects silently."""
            if listeners() == first:
                cut()
            return listeners() != first

        run.wait_for(has_regrouped)
        metrics = run.metrics_once_whole()
    expect_went_on(metrics, lost=0)


LIMITED = ("sh", "-c", 'trap "" XFSZ; ulimit -f 16384; exec "$@"', "sh")
"""A file, or memory that is one, may grow to 8 MiB and no further."""


def recording_to(folder: Path) -> tuple[str, ...]:
    return ("--set", "measure.sink=file", "--set", f"measure.sink_files={folder}")


def expect_not_written(result: dict, folder: Path, reason: str) -> None:
    """The run's accounts are those of its recording."""
    metrics = result["metrics"]
    accounts = expect_accounted(metrics)
    assert metrics["units_lost"] == 0
    assert metrics["events_not_written"] == accounts["not_written"] > 0
    assert reason in " ".join(result["warnings"])
    found = check_recording(folder, generated=True)
    assert found.is_right
    assert found.unfinished == []
    assert found.gaps.events - found.gaps.incomplete_events == accounts["built"]


def test_unwritten_events_are_counted_and_fail_the_command(tmp_path: Path) -> None:
    with Live("2 s", *recording_to(tmp_path), *FAULTLESS, prefix=LIMITED) as run:
        result = run.result(code=1)
        assert "cannot write what it builds: File too large" in run.log()
    expect_not_written(result, tmp_path, "File too large")


def test_a_run_that_cannot_write_stops_if_configured(tmp_path: Path) -> None:
    stop = ("--set", "measure.when_unwritable=stop")
    with Live("600 s", *recording_to(tmp_path), *stop, *FAULTLESS, prefix=LIMITED) as run:
        result = run.result(code=1)
    expect_not_written(result, tmp_path, "; the run stops")


def test_a_full_disk_is_counted_and_fails_the_command(tmp_path: Path) -> None:
    disk = ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=2m disk {tmp_path} && exec "$@"')
    if subprocess.run([*disk, "sh", "true"], capture_output=True).returncode != 0:
        pytest.skip("a full disk needs root")
    with Live("2 s", *recording_to(tmp_path), *FAULTLESS, prefix=(*disk, "sh")) as run:
        result = run.result(code=1)
    accounts = expect_accounted(result["metrics"])
    assert result["metrics"]["units_lost"] == 0
    assert accounts["not_written"] > 0
    assert accounts["built"] * 4 * 1000 <= 2**21, "no more than there is room for"
    assert "No space left on device" in " ".join(result["warnings"])


def test_unfinished_files_of_a_killed_unit_are_recovered(tmp_path: Path) -> None:
    slow = ("--set", "event.rate=20 kHz", "--set", "measure.restart=false")
    with Live("4 s", *recording_to(tmp_path), *slow) as run:
        units = run.building()
        run.wait_for(lambda: any(each.nbytes > 0 for each in unfinished_files(tmp_path)))
        os.kill(units[0], signal.SIGKILL)
        result = run.result()
    assert f"`daqloom data recover {tmp_path}`" in " ".join(result["warnings"])
    left = unfinished_files(tmp_path)
    assert {each.in_use for each in left} == {False}
    assert all(each.outcome in ("finished", "dropped") for each in recover(tmp_path))
    found = check_recording(tmp_path, generated=True)
    assert found.unfinished == []
    assert found.is_right
    assert found.gaps.events > 0

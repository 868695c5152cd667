"""Faults of every kind on real processes, disks and networks: nothing is delivered twice or
damaged, nothing unaccounted for; benchmarks/event_building_faults/hour.py runs for longer."""

import json
import subprocess
import sys

import pytest

from support.measure.transports import TRANSPORTS
from support.namespaces import NETWORKS
from support.repository import ROOT

pytestmark = NETWORKS

PROGRAM = ROOT / "benchmarks" / "event_building_faults" / "hour.py"
OVER_NETWORK = pytest.mark.parametrize("transport", ["tcp", "libfabric:tcp"])


def expect_no_damage(transport: str, faults: int, *options: str) -> None:
    command = [sys.executable, str(PROGRAM), "--transport", transport, "--faults", str(faults)]
    command += ["--minutes", "0", "--units", "4", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert len(report["faults"]) == faults
    assert report["recorded"]["twice"] == report["recorded"]["wrong"] == 0
    fates = report["events_accounted"]
    known = sum(n for fate, n in fates.items() if fate not in ("begun", "twice"))
    assert known == fates["begun"] > 0


@TRANSPORTS
def test_units_that_are_killed_or_stopped_together(transport: str) -> None:
    expect_no_damage(transport, 2, "--kinds", "group", "--only", "all-killed", "all-stopped")


@OVER_NETWORK
def test_units_that_reach_neither_each_other_nor_the_run_control(transport: str) -> None:
    only = ("units-apart", "all-links", "control-apart-from-all")
    expect_no_damage(transport, 3, "--kinds", "network", "--only", *only)


def test_a_run_control_that_is_stopped_killed_or_cut_off() -> None:
    only = ("stopped", "killed-running", "all-connections")
    expect_no_damage("shm", 3, "--kinds", "control", "network", "--only", *only)


def test_a_full_disk_a_stalled_consumer_and_a_hook_that_fails() -> None:
    only = ("full", "stalled", "fails-before-start")
    expect_no_damage("shm", 3, "--kinds", "disk", "consumer", "hook", "--only", *only)


@pytest.mark.soak
@TRANSPORTS
def test_all_faults(transport: str) -> None:
    expect_no_damage(transport, 84)

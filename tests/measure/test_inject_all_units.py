"""All units are lost or unreachable at once: nothing is recorded twice, nothing unaccounted for;
benchmarks/event_building_soak.py --rounds 10 runs for longer."""

import json
import subprocess
import sys

import pytest

from support.measure.transports import TRANSPORTS
from support.namespaces import NETWORKS
from support.repository import ROOT

pytestmark = NETWORKS

SOAK = ROOT / "benchmarks" / "event_building_soak.py"


def expect_recorded_once(transport: str, *options: str) -> None:
    command = [sys.executable, str(SOAK), "--rounds", "1", "--transport", transport, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["recorded_twice"] == report["recorded_damage"] == 0
    accounts = report["events_accounted"]
    assert sum(n for fate, n in accounts.items() if fate != "begun") == accounts["begun"]
    # Events of a killed unit after its last heartbeat are in the files alone.
    unknown = accounts["not_processed"] + accounts["unfinished"] + accounts["skipped"]
    assert 0 <= report["recorded_events"] - accounts["built"] - accounts["incomplete"] <= unknown


SHORT = ("--longest", "2")


@TRANSPORTS
def test_units_that_are_killed_or_stopped_together(transport: str) -> None:
    expect_recorded_once(transport, *SHORT, "--kinds", "kill-all", "stop-all")


@TRANSPORTS
def test_a_run_control_that_is_stopped_or_unreachable(transport: str) -> None:
    expect_recorded_once(transport, *SHORT, "--kinds", "control-stop", "control-cut")


@pytest.mark.parametrize("transport", ["tcp", "libfabric:tcp"])
def test_units_that_do_not_reach_each_other(transport: str) -> None:
    expect_recorded_once(transport, *SHORT, "--kinds", "data-cut", "both-cut")


@pytest.mark.soak
@TRANSPORTS
def test_all_faults_of_all_units_together(transport: str) -> None:
    expect_recorded_once(transport)

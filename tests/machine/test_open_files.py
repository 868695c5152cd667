"""A run that would run out of files is refused before it begins; one that has just enough runs."""

import json
import resource
import subprocess
import sys

import pytest

from daqloom.control.protocol.messages import Configure
from daqloom.control.unit import Unit
from daqloom.deployment.scenarios import load
from daqloom.machine.open_files import AMPLE, check_open_files, files_of_a_control
from daqloom.measure.configure import files_of_a_unit, live_node
from daqloom.results.errors import MeasureError
from support.measure.controlled_runs import HUNG_S

ARGUMENTS = (
    "measure",
    "laptop",
    "--json",
    "--duration",
    "1 s",
    "--set",
    "measure.fault_timeout=20 s",
)
OVERRIDES = ["measure.fault_timeout=20 s"]


def measured(soft, hard, *arguments):
    """By a process that may open so many files."""
    limited = (
        "import resource, runpy; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); "
        "runpy.run_module('daqloom', run_name='__main__')"
    )
    return subprocess.run(
        [sys.executable, "-c", limited, *ARGUMENTS, *arguments],
        capture_output=True,
        text=True,
        timeout=HUNG_S,
    )


def files_of_run(*overrides):
    scenario = load("laptop", [*OVERRIDES, *overrides])
    return max(files_of_a_unit(scenario), files_of_a_control(scenario.readout.units))


@pytest.mark.parametrize(
    "overrides",
    [
        *((), ("readout.streams=4",), ("measure.transport=tcp",)),
        *(("measure.transport=libfabric:tcp",), ("measure.transport=shm+tcp",)),
    ],
)
@pytest.mark.process
def test_a_run_needs_no_more_open_files_than_computed(overrides):
    options = [part for key in overrides for part in ("--set", key)]
    done = measured(30, files_of_run(*overrides), *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["metrics"]
    assert found["units_lost"] == 0
    assert found["events_built"] > 0


@pytest.mark.process
def test_a_run_that_needs_more_is_refused_in_a_sentence():
    least = files_of_run()
    done = measured(30, least - 1)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert f"needs {least} open files, and the limit is {least - 1}; put" in line
    assert "limits.d" in line


def test_a_unit_with_a_low_limit_of_open_files_reports_it(monkeypatch):
    scenario = load("laptop")
    least = files_of_a_unit(scenario)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (least - 1, least - 1))
    document = scenario.model_dump(mode="json", exclude_unset=True)
    order = Configure(order=1, unit=2, run="r", units=4, heartbeat_s=1.0, scenario=document)
    failure = Unit(bytes(16), live_node).obey(order).failure
    assert failure.startswith(f"unit 2 needs {least} open files, and the limit is")


@pytest.mark.parametrize(
    ("soft", "hard", "set_to"),
    [
        (100, 200, 200),
        (100, resource.RLIM_INFINITY, AMPLE),
        (AMPLE, 2 * AMPLE, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_is_raised_as_far_as_is_useful(monkeypatch, soft, hard, set_to):
    told = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: told.append(limits))
    check_open_files(150, "it")
    assert told == ([] if set_to is None else [(set_to, hard)])


def test_a_limit_below_the_need_is_not_touched(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 149))
    monkeypatch.setattr(resource, "setrlimit", None)
    with pytest.raises(MeasureError, match=r"it needs 150 open files, .* limit is 149; put"):
        check_open_files(150, "it")

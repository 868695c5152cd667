"""Records of real runs, whose sums are those of the result, and which survive SIGKILL."""

import json
import os
import signal
import socket
import subprocess
import threading

import pytest

from daqloom.base.claims import is_claimed
from daqloom.control.record.folders import find_run_folder
from daqloom.control.record.past import read_events, read_run
from daqloom.control.record.series import RUN, UNITS, read_series
from daqloom.scenario import to_toml
from support.measure.controlled_runs import HUNG_S
from support.measure.small_runs import DAQLOOM, daqloom, small

pytestmark = pytest.mark.process


@pytest.fixture
def scenario_file(tmp_path, monkeypatch):
    monkeypatch.setenv("DAQLOOM_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    file = tmp_path / "small.toml"
    file.write_text(to_toml(small()))
    return file


def test_the_record_of_a_measurement_has_the_events_of_its_result(scenario_file):
    done = daqloom("measure", str(scenario_file), "--json", "--duration", "2 s")
    assert done.returncode == 0, done.stderr
    begun = json.loads(done.stdout)["metrics"]["events_accounted"]["begun"]
    folder = find_run_folder("last")
    assert f"the record is in {folder}" in done.stderr
    run = read_run(folder)
    assert (run.state, run.about.method, run.about.units) == ("ended", "measure", 3)
    assert run.summary.events == begun > 0
    columns, broken = read_series(folder, RUN)
    assert broken == []
    assert columns["events"].sum() == pytest.approx(begun)
    units, _ = read_series(folder, UNITS)
    assert units["events"].sum() == pytest.approx(begun, rel=1e-3)
    assert set(units["unit"]) == {0, 1, 2}
    texts = [each["text"] for each in read_events(folder)]
    assert "running: from MEP 0" in texts
    assert texts[-1] == "ended"


def test_a_killed_run_control_leaves_its_record(scenario_file):
    command = [*DAQLOOM, "control", str(scenario_file), "--start"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        killer = threading.Timer(HUNG_S, process.kill)
        killer.start()
        try:
            assert any("running: from MEP 0" in line for line in process.stdout)
            folder = find_run_folder("last")
            assert is_claimed(folder)
            assert read_run(folder).state == "running"
            refused = daqloom("runs", "remove", folder.name, "--yes")
            assert "is going on" in refused.stderr
            while not len(read_series(folder, RUN)[0]["time_s"]) and killer.is_alive():
                os.sched_yield()  # bins come within seconds
        finally:
            killer.cancel()
            process.send_signal(signal.SIGKILL)
    run = read_run(folder)
    assert run.state == "abandoned"
    assert "running: from MEP 0" in [each["text"] for each in read_events(folder)]
    assert read_series(folder, RUN)[1] == []
    shown = daqloom("runs", "show", folder.name)
    assert "unattended" in shown.stdout  # its units wait for another run control


def test_a_run_without_a_place_for_its_record_is_a_run(scenario_file, tmp_path):
    (tmp_path / "runs").write_text("a file")
    done = daqloom("measure", str(scenario_file), "--json")
    assert done.returncode == 0
    assert "the run is not recorded: cannot make a folder in" in done.stderr


def test_a_run_that_never_began_leaves_no_record(scenario_file, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = daqloom("control", str(scenario_file), "--set", f"measure.port={port}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "runs").iterdir()) == []

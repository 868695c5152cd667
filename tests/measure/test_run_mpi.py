"""Runs over MPI and with mpirun: a unit is a rank, and what MPI cannot do is refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from daqloom._engine import transport_names
from daqloom.deployment.scenarios import load
from daqloom.machine.launch import TOKEN, Mpirun, mpi_of
from daqloom.measure.plan import launcher_of, measurement_plan
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError

HUNG_S = 300
SMALL = (
    *("measure.heartbeat=100 ms", "measure.fault_timeout=5 s", "measure.warmup=200 ms"),
    *("event.packing=20", "measure.stream_buffer=6 MB", "measure.output_buffer=6 MB"),
)
MPI = ("measure.launch=mpirun", "measure.transport=mpi")
PROGRAMS = ("mpirun.openmpi", "mpirun.mpich")


def needs(program: str, transport: str = "") -> None:
    """Skip without this mpirun, or without a shim for the transport."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program} (Debian: openmpi-bin, mpich)")
    if transport.endswith("mpi") and "mpi" not in transport_names():
        pytest.skip("no shim of MPI (Debian: libopenmpi-dev, libmpich-dev)")


def measure(*keys: str, duration: str = "1500 ms") -> list[str]:
    sets = [part for key in (*SMALL, *keys) for part in ("--set", key)]
    program = (sys.executable, "-m", "daqloom", "measure", "laptop")
    return [*program, "--duration", duration, "--json", *sets]


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("transport", ["mpi", "shm+mpi", "tcp", "shm"])
def test_units_of_an_mpirun_build_every_event(program: str, transport: str) -> None:
    needs(program, transport)
    keys = ("measure.launch=mpirun", f"measure.mpirun={program}", f"measure.transport={transport}")
    done = subprocess.run(measure(*keys), capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["metrics"]
    assert found["events_built"] > 0
    assert found["events_incomplete"] == found["units_lost"] == 0
    assert found.get("fragments_corrupt", 0) == 0  # the sink checks every byte


@pytest.mark.process
def test_a_run_leaves_no_shared_memory_of_open_mpi(tmp_path: Path) -> None:
    needs("mpirun.openmpi", "mpi")
    folder = {"OMPI_MCA_btl_vader_backing_directory": str(tmp_path)}
    command = measure(*MPI, "measure.mpirun=mpirun.openmpi")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=HUNG_S, env=os.environ | folder
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_shared_memory_and_tcp_build_events_in_one_run() -> None:
    done = subprocess.run(
        measure("measure.transport=shm+tcp"), capture_output=True, text=True, timeout=HUNG_S
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["metrics"]
    assert found["events_built"] > 0
    assert found["events_incomplete"] == found["units_lost"] == 0


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["measure.transport=mpi"], 'requires launch = "mpirun"'),
        (["measure.transport=shm+mpi"], 'requires launch = "mpirun"'),
        ([*MPI, "measure.restart=true"], "ends all units when it loses one"),
        ([*MPI, "measure.namespaces=true"], "namespaces requires transport"),
        (["measure.mpirun=mpirun.mpich"], "measure.launch"),
        ([*MPI, "measure.mpirun=-x"], "is not a program"),
        (["measure.transport=shm+shm"], "is not a transport"),
    ],
)
def test_limits_of_mpi_are_checked_before_the_start(keys: list[str], reason: str) -> None:
    with pytest.raises(ScenarioError, match=reason):
        load("laptop", keys)


def test_the_loss_of_a_rank_is_not_injected() -> None:
    fault = ("faults.injected.kill.what=unit", "faults.injected.kill.at=1 s")
    scenario = load("laptop", [*MPI, *fault])
    with pytest.raises(ScenarioError, match="MPI cannot lose a rank"):
        measurement_plan(scenario, seed=None, launcher=None, traced=False, arrivals=False)


def test_units_of_an_mpirun_do_not_return() -> None:
    assert load("laptop").measure.restarts
    assert not load("laptop", MPI).measure.restarts


def test_ranks_are_units_in_the_order_of_the_hosts() -> None:
    launcher = Mpirun(["a", "a", "b", "a"], "MPICH", command=("unit",), program="mpiexec")
    [task] = launcher.tasks(range(4), "h:1")
    unit = "unit --control h:1"
    expected = f"mpiexec -n 2 -host a {unit} : -n 1 -host b {unit} : -n 1 -host a {unit}"
    assert " ".join(task.command) == expected
    assert task.units == (0, 1, 2, 3)
    assert task.token_in_environment
    assert launcher.tasks([2], "h:1") == []  # no rank is started again
    assert launcher.command_at(2, ("true",)) == ("mpiexec", "-n", "1", "-host", "b", "true")


def test_open_mpi_gets_the_token_from_the_environment() -> None:
    [task] = Mpirun(["", ""], "Open MPI", command=("unit",)).tasks([0, 1], "h:1")
    assert task.command[-5:] == ("-n", "2", "unit", "--control", "h:1")
    options = task.command[: task.command.index("-n")]
    assert options[options.index("-x") + 1] == TOKEN
    assert ("--allow-run-as-root" in options) == (os.geteuid() == 0)


@pytest.mark.parametrize(("program", "mpi"), [(PROGRAMS[0], "Open MPI"), (PROGRAMS[1], "MPICH")])
@pytest.mark.process
def test_the_mpi_of_an_mpirun_is_known(program: str, mpi: str) -> None:
    needs(program)
    assert mpi_of(program) == mpi
    launcher = launcher_of(load("laptop", [*MPI, f"measure.mpirun={program}"]))
    assert isinstance(launcher, Mpirun)
    assert launcher.mpi == mpi
    assert list(launcher.hosts) == [""] * 4


@pytest.mark.process
def test_another_mpirun_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="cannot run"):
        mpi_of(str(tmp_path / "mpirun"))
    with pytest.raises(MeasureError, match="neither of Open MPI nor of MPICH"):
        mpi_of("/bin/true")


@pytest.mark.process
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_run_that_loses_a_rank_ends_and_reports_why(program: str, tmp_path: Path) -> None:
    needs(program, "mpi")
    command = measure(*MPI, f"measure.mpirun={program}", duration="600 s")
    # Open MPI leaves files of a killed rank, and a failed run those with the output of units.
    folder = {"OMPI_MCA_btl_vader_backing_directory": str(tmp_path), "TMPDIR": str(tmp_path)}
    printed = ""
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | folder,
    ) as run:
        assert run.stderr is not None
        try:
            for line in run.stderr:
                printed += line
                if "4 of 4 units running" in line:
                    break
            os.kill(_ranks(run.pid)[-1], signal.SIGKILL)
            printed += run.communicate(timeout=HUNG_S)[1]
        finally:
            run.kill()
    assert run.returncode == 1, printed
    assert "mpirun ends all units when it loses one" in printed


def _ranks(parent: int) -> list[int]:
    """Processes of units below `parent`."""
    found, below = [], [parent]
    while below:
        process = below.pop()
        try:
            tasks = Path(f"/proc/{process}/task").iterdir()
            below += [
                int(child) for task in tasks for child in (task / "children").read_text().split()
            ]
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--control" in words and b"-n" not in words:
            found.append(process)
    return found

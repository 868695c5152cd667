"""Measurements of units that have cores and a network device of this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import override
from daqloom.measure.run import Progress, measure
from daqloom.results.result import Result
from daqloom.scenario import to_toml
from daqloom.scenario.schema.models import Scenario
from daqloom.study.methods import methods
from support.children import children
from support.measure.small_runs import DAQLOOM, small

pytestmark = pytest.mark.process
CORES = [min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))]


def server(*, shape: str = "fat-tree", **changes: object) -> Scenario:
    """LHCb's server in small: one machine with a core and a device for each of two units."""
    units = [
        {"unit": unit, "host": "r5n0020", "cores": str(core), "numa": -1, "device": "lo"}
        for unit, core in enumerate(CORES)
    ]
    table = {"hosts.placement": "table", "hosts.units": units, "network.shape": shape}
    given = override(small(transport="tcp"), {"readout.streams": 2})
    return override(given, table | {f"measure.{key}": value for key, value in changes.items()})


def affinities(pid: int) -> set[frozenset[int]]:
    """Return the cores of each thread of a process that has joined its run."""
    threads = [int(each) for each in os.listdir(f"/proc/{pid}/task")]
    return {frozenset(os.sched_getaffinity(each)) for each in threads}


def placed_run(scenario: Scenario) -> tuple[Result, list[set[frozenset[int]]]]:
    """Return the result of a run, and the cores of all threads of its units while it lasted."""
    seen: list[set[frozenset[int]]] = []

    def look(progress: Progress) -> None:
        if progress.share and not seen:
            pids = sorted(children(), key=unit_of)
            seen.extend(affinities(pid) for pid in pids if unit_of(pid) >= 0)

    return measure(scenario, progress=look), seen


def unit_of(pid: int) -> int:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return int(words[words.index("--unit") + 1]) if "--unit" in words else -1


@pytest.mark.parametrize("transport", ["tcp", "shm", "libfabric:tcp"])
def test_the_units_of_a_server_run_on_their_own_cores(transport: str) -> None:
    result, seen = placed_run(server(transport=transport))
    assert seen == [{frozenset({core})} for core in CORES]
    assert (result.metric("events_built") or 0) > 0
    assert result.metric("events_wrong") == 0
    assert not [text for text in result.warnings if "without effect" not in text]


def test_the_same_file_is_simulated_and_analysed() -> None:
    scenario = server()
    rule = override(small(), {"readout.units": 2, "readout.streams": 2})
    assert methods.simulate(scenario, seed=1).metrics == methods.simulate(rule, seed=1).metrics
    assert methods.analyse(scenario).metrics == methods.analyse(rule).metrics


def test_a_dry_run_starts_each_unit_on_its_machine(tmp_path: Path) -> None:
    hosts = {"measure.launch": "ssh", "measure.hosts": ["r5n0021", "r5n0020"]}
    file = tmp_path / "own.toml"
    file.write_text(to_toml(override(server(), hosts)))
    done = subprocess.run([*DAQLOOM, "measure", file, "--dry-run"], capture_output=True, text=True)
    starts = [line.split(" -- ")[1].split()[0] for line in done.stdout.splitlines() if "--" in line]
    assert starts == ["r5n0020", "r5n0020"]


def test_a_core_that_the_machine_lacks_ends_the_run_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    text = to_toml(server(minimum=2, restart=False))
    file.write_text(text.replace(f'cores = "{CORES[1]}"', 'cores = "4095"'))
    done = subprocess.run([*DAQLOOM, "measure", file], capture_output=True, text=True)
    assert done.returncode == 1
    assert "unit 1 has here no core 4095" in " ".join(done.stderr.split())

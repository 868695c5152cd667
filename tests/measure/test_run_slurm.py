"""Measurements in an allocation of a real Slurm, whose two nodes are this machine."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daqloom.cli.console.installation import findings
from daqloom.deployment.scenarios import override
from daqloom.measure.hosts import examine_scenario
from daqloom.measure.run import Progress, measure
from daqloom.scenario.schema.models import Scenario
from support.measure.controlled_runs import HUNG_S
from support.measure.small_runs import small
from support.slurm_cluster import NEEDS, cluster

pytestmark = NEEDS
HOSTS = ["n1", "n0", "n1"]
"""Nodes of the units; Slurm by itself would give n0, n0, n1 or n0, n1, n0."""


@pytest.fixture
def allocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An allocation of both nodes; its number."""
    with cluster(tmp_path / "slurm", "n0", "n1", cpus=2) as environment:
        words = ["salloc", "--no-shell", "--nodes=2", "--ntasks=4", "--mem=300"]
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=HUNG_S
        )
        granted = re.search(r"Granted job allocation (\d+)", done.stderr)
        assert granted, done.stderr
        monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        monkeypatch.setenv("SLURM_JOB_ID", granted[1])
        monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-1]")
        yield granted[1]
        subprocess.run(["scancel", granted[1]], env=environment, check=True)


def by_table() -> Scenario:
    core = str(max(os.sched_getaffinity(0)))
    units = [{"unit": unit, "host": host, "cores": core} for unit, host in enumerate(HOSTS)]
    table = {"hosts.placement": "table", "hosts.units": units}
    return override(small(transport="tcp", launch="slurm", fault_timeout="60 s"), table)


def nodes_of_units(allocation: str) -> dict[int, str]:
    """Return the node of each task of the allocation that runs a unit."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, KeyError):
            words = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            environment = dict(word.partition("=")[::2] for word in words)
            is_unit = b"\0unit\0" in (process / "cmdline").read_bytes()
            if is_unit and environment["SLURM_JOB_ID"] == allocation:
                found[int(environment["SLURM_PROCID"])] = environment["SLURMD_NODENAME"]
    return found


def test_slurm_starts_each_unit_on_its_node_and_core(allocation: str) -> None:
    seen: dict[int, str] = {}

    def look(progress: Progress) -> None:
        if progress.share and not seen:
            seen.update(nodes_of_units(allocation))

    result = measure(by_table(), progress=look)
    assert seen == dict(enumerate(HOSTS))
    assert (result.metric("events_built") or 0) > 0
    assert result.metric("events_wrong") == 0


def test_doctor_reaches_the_nodes_of_the_table_and_of_the_allocation(allocation: str) -> None:
    for scenario in (by_table(), small(transport="tcp", launch="slurm")):
        found = examine_scenario(scenario, findings)
        by_host = {host: {each.check for each in found if each.host == host} for host in HOSTS}
        assert by_host.keys() == {"n0", "n1"} == {each.host for each in found}
        for checks in by_host.values():
            assert {"clock offset", "daqloom", "kernel", "hugepages", "NUMA"} <= checks
        states = {each.state for each in found if each.check in ("daqloom", "clock offset")}
        assert states == {"ok"}

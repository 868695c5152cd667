"""The software switch of a laboratory ends with the process that has started it."""

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from daqloom.base.claims import LIVE, claimed_folder
from support.measure.controlled_runs import HUNG_S, gone
from support.namespaces import NETWORKS

pytestmark = NETWORKS
LOOK_S = 0.02
HOLDS = """
import signal
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from support.laboratories import rack
keys = {"readout__units": 1, "network__switch__tor__model": "software"}
with Laboratory(lab_network(rack(**keys))):
    print("made", flush=True)
    signal.pause()
"""


def programs(mark: str) -> dict[int, str]:
    """The command lines of processes whose environment has the mark, by process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "environ").read_bytes().split(b"\0"):
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(path.name)] = line.decode()
        except OSError:
            continue
    return found


def wait_for_switch(mark: str, process: subprocess.Popen[str]) -> None:
    for _ in range(round(HUNG_S / LOOK_S)):
        if any("switch run" in line for line in programs(mark).values()):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(LOOK_S)
            pytest.skip(process.communicate()[1])  # DPDK cannot run here
    raise AssertionError("the laboratory starts no switch")


async def all_gone(mark: str) -> None:
    async with asyncio.timeout(HUNG_S):
        while left := programs(mark):
            await gone(*left)


@pytest.mark.parametrize("moment", ["the switch starts", "it runs"])
def test_nothing_is_left_of_a_laboratory_that_was_killed(tmp_path, monkeypatch, moment) -> None:
    pytest.importorskip("daqloom._switch")
    mark = f"TMPDIR={tmp_path}"
    environment = os.environ | {
        "TMPDIR": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        if moment == "it runs":
            process.stdout.readline()
        wait_for_switch(mark, process)
        process.kill()
        process.wait()
        asyncio.run(all_gone(mark))
    finally:
        process.kill()
        process.communicate()
    # DPDK's files are there too, where every user can write.
    left = {path.name for path in tmp_path.glob(f"{LIVE}*/*")}
    assert left == {"dpdk", "switch.toml"} if moment == "it runs" else left <= {"switch.toml"}
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with claimed_folder():
        assert not list(tmp_path.glob(f"{LIVE}*/*"))

"""Ways to start units: children, ssh, srun; with stand-ins for programs, and with a real sshd."""

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from daqloom.control.unit_program import rank, read_token
from daqloom.deployment.scenarios import override
from daqloom.machine.launch import Local, Slurm, Ssh
from daqloom.measure.configure import share, unit_placement
from daqloom.measure.plan import launcher_of, needs_of
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from support.measure.controlled_runs import FAKE, gone, pid, running, started
from support.small_fabrics import small

SSHD = Path("/usr/sbin/sshd")

SSH = """#!/bin/sh
echo "$@" >>{log}
while [ "$1" != "--" ]; do shift; done
shift 2
exec sh -c "$*"
"""
SRUN = """#!/bin/sh
echo "$@" >>{log}
read token
for given in "$@"; do
    case $given in --ntasks=*) tasks=${{given#--ntasks=}} ;; esac
done
while case $1 in --*) true ;; *) false ;; esac do shift; done
for task in $(seq 0 $((tasks - 1))); do
    echo $token | SLURM_PROCID=$task SLURM_NTASKS=$tasks "$@" &
done
wait
"""


def stand_in(folder: Path, name: str, text: str, monkeypatch) -> Path:
    """A program that comes first on PATH and writes down its arguments."""
    log, program = folder / f"{name}.log", folder / name
    program.write_text(text.format(log=log))
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_local_units_outlive_a_run_control_that_leaves_its_address_in_a_file():
    [task] = Local(FAKE, address_file="/run/address").tasks([1], "127.0.0.1:7000")
    assert task.command[-2:] == ("--address-file", "/run/address")
    assert "--parent" not in task.command
    [task] = Local(FAKE).tasks([1], "127.0.0.1:7000")
    assert task.command[-2:] == ("--parent", str(os.getpid()))


@pytest.mark.process
async def test_ssh_deals_units_out_to_hosts_and_shows_no_token(tmp_path, monkeypatch):
    log = stand_in(tmp_path, "ssh", SSH, monkeypatch)
    async with started(tmp_path, Ssh(("red", "green"), FAKE)) as control:
        token, units = control.token.hex(), [pid(control, unit) for unit in range(3)]
        os.kill(pid(control, 2), 9)
        await running(control, {0, 1})
        await running(control, {0, 1, 2})
    await gone(*units)
    lines = log.read_text().splitlines()
    assert token not in log.read_text()
    placed = sorted((line.split(" -- ")[1].split()[0], "--unit 1" in line) for line in lines)
    assert placed == [("green", True), ("red", False), ("red", False), ("red", False)]


TABLE = [
    {"unit": 0, "role": "builder", "host": "H01-01"},
    {"unit": 2, "role": "readout", "host": 0},
    {"unit": 1, "host": "H00-01"},
]


def by_table(*hosts: str):
    return small(
        hosts__placement="table",
        hosts__units=TABLE,
        measure__launch="ssh",
        measure__hosts=list(hosts),
    )


@pytest.mark.process
async def test_ssh_starts_each_unit_on_the_host_that_a_table_gives_it(tmp_path, monkeypatch):
    log = stand_in(tmp_path, "ssh", SSH, monkeypatch)
    launcher = launcher_of(by_table("H00-00", "daq@H00-01", "H01-00", "H01-01"))
    launcher = replace(launcher, command=FAKE)
    async with started(tmp_path, launcher):
        pass
    lines = [line.split(" -- ")[1].split() for line in log.read_text().splitlines()]
    placed = {int(words[words.index("--unit") + 1]): words[0] for words in lines}
    assert placed == {0: "H01-01", 1: "daq@H00-01", 2: "H00-00"}
    assert launcher.command_at(1, ("true",))[-2] == "daq@H00-01"


def test_a_host_of_a_table_has_to_be_among_those_of_the_launch():
    with pytest.raises(ScenarioError, match=r"unit 1 is on H00-01, which is not among"):
        launcher_of(by_table("H00-00", "H01-01"))


@pytest.mark.process
async def test_srun_gives_units_their_numbers_and_starts_a_lost_one_alone(tmp_path, monkeypatch):
    log = stand_in(tmp_path, "srun", SRUN, monkeypatch)
    async with started(tmp_path, Slurm(FAKE)) as control:
        token, victim = control.token.hex(), pid(control, 1)
        os.kill(victim, 9)
        await running(control, {0, 2})
        await running(control, {0, 1, 2})
        assert pid(control, 1) != victim
    first, second = log.read_text().splitlines()
    assert "--ntasks=3" in first
    assert "--unit" not in first
    assert "--ntasks=1" in second
    assert "--unit 1" in second
    assert token not in log.read_text()


MACHINES = [
    {"unit": 0, "host": "s0", "numa": 0, "device": "mlx5_0"},
    {"unit": 1, "host": "s0", "cores": "16-31", "device": "mlx5_1"},
    {"unit": 2, "host": "s1", "device": "mlx5_0"},
]


def of_machines(launch: str, *hosts: str, shape: str = "fat-tree", units: object = None):
    return override(
        Scenario(),
        {
            "network.shape": shape,
            "network.technology": "ethernet" if shape == "rack" else "infiniband",
            "building.protocol": "pull" if shape == "rack" else "shift",
            "hosts.placement": "table",
            "hosts.units": units or MACHINES,
            "measure.launch": launch,
            "measure.hosts": list(hosts),
        },
    )


@pytest.mark.parametrize("shape", ["fat-tree", "one-switch", "rack"])
def test_machines_of_a_table_are_obeyed_with_any_network(shape):
    """Units 0 and 1 of s0 stay together; in turn, unit 1 would be on s1."""
    scenario = of_machines("ssh", "daq@s0", "s1", shape=shape)
    tasks = launcher_of(scenario).tasks(range(3), "h:1")
    assert [task.command[task.command.index("--") + 1] for task in tasks] == [
        "daq@s0",
        "daq@s0",
        "s1",
    ]
    found = needs_of(scenario)
    assert (found.units_here, found.hosts, found.pinned) == (2, 2, True)


def test_srun_places_each_unit_of_a_table():
    launcher = launcher_of(of_machines("slurm"))
    [all_units] = launcher.tasks(range(3), "h:1")
    assert {"--ntasks=3", "--distribution=arbitrary", "--nodelist=s0,s0,s1"} <= {*all_units.command}
    assert "--cpu-bind=none" in all_units.command  # they pin themselves
    [again] = launcher.tasks([1], "h:1")
    assert {"--ntasks=1", "--nodes=1", "--nodelist=s0", "--cpu-bind=none"} <= {*again.command}
    at = launcher.command_at(2, ("true",))
    assert at[0] == "srun"
    assert at[-2:] == ("--nodelist=s1", "true")
    free = [{"unit": unit, "host": "s0"} for unit in range(2)]
    [bound] = launcher_of(of_machines("slurm", units=free)).tasks(range(2), "h:1")
    assert "--cpu-bind=none" not in bound.command
    with pytest.raises(MeasureError, match="unknown"):
        Slurm().command_at(0, ("true",))


def test_units_of_a_machine_share_its_cores_in_the_order_of_the_table():
    one, other = (min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0)))
    units = [{"unit": unit, "host": host} for unit, host in enumerate(["a", "b", "b", "a"])]
    scenario = of_machines("ssh", "a", "b", units=units)
    scenario = override(scenario, {"measure.cores": f"{one},{other}"})
    found = [unit_placement(scenario, unit, 4).cores for unit in range(4)]
    assert found == [{one}, {one}, {other}, {other}]
    units[1]["cores"] = str(other)  # its own cores replace its share
    own = override(scenario, {"hosts.units": units})
    assert unit_placement(own, 1, 4).cores == {other}


@pytest.mark.process
async def test_units_run_by_a_real_ssh(tmp_path):
    if not SSHD.exists() or not shutil.which("ssh"):
        pytest.skip("no sshd on this machine")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # what the start of Debian's sshd makes
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True
        )
    config = tmp_path / "sshd_config"
    config.write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\nStrictModes no\n"
        "UsePAM no\nPermitRootLogin yes\nPidFile none\n"
    )
    program = (
        *("ssh", "-F", "none", "-i", str(tmp_path / "user"), "-o", "BatchMode=yes"),
        *("-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path}/known"),
        *("-o", f"ProxyCommand={SSHD} -i -f {config}"),  # no port at all
    )
    if subprocess.run([*program, "--", "here", "true"], capture_output=True).returncode:
        pytest.skip("sshd does not run as this user")
    command = ("env", f"PYTHONPATH={os.pathsep.join(sys.path)}", *FAKE)
    launcher = Ssh(("here",), command, program=program)
    async with started(tmp_path, launcher, units=2) as control:
        units = [pid(control, unit) for unit in range(2)]
        control.processes.kill(0)  # the ssh on this side
        await running(control, {1})
        await gone(units[0])  # and the unit on the other
        await running(control, {0, 1})
    await gone(*units)


def test_units_of_slurm_that_are_not_all_get_their_numbers_from_us():
    several = Slurm(("unit",)).tasks([1, 3], "h:1")
    assert [task.units for task in several] == [(1,), (3,)]
    assert [task.command[-1] for task in several] == ["1", "3"]
    [task] = Slurm(("unit",)).tasks([5], "h:1")
    assert task.command[-4:] == ("--control", "h:1", "--unit", "5")
    assert [task.units for task in Local(("unit",)).tasks([3, 4], "h:1")] == [(3,), (4,)]


@pytest.mark.parametrize(
    ("given", "number"),
    [
        *(({}, None), ({"SLURM_PROCID": "7"}, 7), ({"PMI_RANK": "6"}, 6)),
        ({"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "5"}, 5),
    ],
)
def test_a_rank_is_a_number(given, number):
    assert rank(given) == number


@pytest.mark.parametrize("text", ["", "-1", "8192", "1e3", "٣", "x"])
def test_other_ranks_are_refused(text):
    with pytest.raises(MeasureError, match="is not the number of a unit"):
        rank({"SLURM_PROCID": text})


def test_a_token_comes_from_a_file_or_the_environment(tmp_path):
    token = bytes(range(16))
    file = tmp_path / "token"
    file.write_text(token.hex() + "\n")
    assert read_token({}, file) == token
    assert read_token({"DAQLOOM_TOKEN": token.hex()}, None) == token
    for wrong in ("xyz", token.hex()[:-2], token.hex() * 50):
        with pytest.raises(MeasureError, match="is not 32 hexadecimal digits"):
            read_token({"DAQLOOM_TOKEN": wrong}, None)
    with pytest.raises(MeasureError, match="cannot be read: no such file"):
        read_token({}, tmp_path / "none")


@pytest.mark.parametrize(
    ("cores", "sharers", "expected"),
    [
        ([0, 1], 2, [[0], [1]]),
        ([0, 1, 2, 3, 4], 2, [[0, 1], [2, 3]]),
        ([4, 6], 3, [[4], [6], [4]]),
        ([7], 1, [[7]]),
    ],
)
def test_cores_are_shared_out(cores, sharers, expected):
    assert [share(cores, index, sharers) for index in range(sharers)] == expected


def test_units_of_a_host_share_its_cores():
    first = min(os.sched_getaffinity(0))
    assert unit_placement(small(measure__cores=str(first)), 1, 4).cores == {first}
    assert not unit_placement(small(), 1, 4).cores
    with pytest.raises(MeasureError, match=r"unit 0 has here no core 4095"):
        unit_placement(small(measure__cores="4095"), 0, 1)

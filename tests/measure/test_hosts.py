"""`daqloom doctor SCENARIO` over its launcher: hosts that are well, away, old or loud."""

import json
import os
import stat
from pathlib import Path

import pytest

from daqloom.deployment.scenarios import override
from daqloom.machine.doctor import Finding
from daqloom.machine.machine import Machine
from daqloom.measure import hosts
from daqloom.measure.hosts import examine_here, examine_scenario
from daqloom.results.errors import MeasureError
from daqloom.scenario import to_toml
from daqloom.scenario.schema.models import Scenario
from support.command import invoke
from support.small_fabrics import small

OWN = Finding("daqloom", "ok", "0.1.0, commit 1.")
REPORT = [
    OWN,
    Finding("kernel", "ok", "6.1."),
    Finding("hugepages", "warn", "None.", "Reserve some."),
]
OLD = [Finding("daqloom", "ok", "0.0.9, commit 2.\x1b[31m"), *REPORT[1:]]
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
case "$2 $3" in
    "away "*) echo "ssh: connect to host away port 22: Connection refused" >&2; exit 255 ;;
    "loud "*) exec yes ;;
    "mute "*) exec sleep 600 ;;
    "late date"*) echo $(($(date +%s) - 100)).5; exit ;;
    *" date"*) exec date +%s.%N ;;
    "wrong "*) echo '[{"check": "kernel", "state": "fine"}]'; exit ;;
    "old "*) exec cat FOLDER/old ;;
    "here "*) exec sh -c "$3" ;;
esac
echo "$3" >> FOLDER/asked-$2
cat > FOLDER/given-$2
exec cat FOLDER/report
"""


@pytest.fixture
def by_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a stand-in for ssh, which answers for some hosts."""
    program = tmp_path / "ssh"
    program.write_text(SSH.replace("FOLDER", str(tmp_path)))
    program.chmod(stat.S_IRWXU)
    for name, found in (("report", REPORT), ("old", OLD)):
        (tmp_path / name).write_text(json.dumps([vars(finding) for finding in found]))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def on(*names: str, units: int = 4) -> Scenario:
    entries = [{"unit": unit, "host": names[unit % len(names)]} for unit in range(units)]
    return small(
        hosts__placement="table",
        hosts__units=entries,
        measure__launch="ssh",
        measure__hosts=list(names),
        measure__transport="tcp",
    )


def own() -> list[Finding]:
    return [OWN]


@pytest.mark.process
def test_each_host_reports_on_its_units(by_ssh: Path) -> None:
    scenario = on("red", "green")
    found = examine_scenario(scenario, own)
    assert [(each.host, each.check) for each in found] == [
        (host, check)
        for host in ("red", "green")
        for check in ("clock offset", "daqloom", "kernel", "hugepages")
    ]
    assert [each for each in found if each.state != "ok"] == [
        Finding("hugepages", "warn", "None.", "Reserve some.", host) for host in ("red", "green")
    ]
    asked = (by_ssh / "asked-green").read_text().split()
    assert asked[-4:] == ["doctor", "--json", "--of-units", "1,3"]
    given = json.loads((by_ssh / "given-red").read_text())
    assert Scenario.model_validate(given) == scenario


@pytest.mark.process
def test_a_host_that_fails_is_named_with_the_reason(
    by_ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "TIMEOUT_S", 20.0)
    found = examine_scenario(on("away", "loud", "wrong", "old"), own)
    failed = {each.host: each for each in found if each.state == "fail"}
    assert {host: each.check for host, each in failed.items()} == {
        "away": "reachable",
        "loud": "reachable",
        "wrong": "reachable",
        "old": "daqloom",
    }
    assert "Connection refused" in failed["away"].means
    assert "more than 1 MiB" in failed["loud"].means
    assert "malformed" in failed["wrong"].means
    assert failed["old"].means.endswith("The run control has 0.1.0, commit 1.")


@pytest.mark.process
def test_a_host_that_does_not_answer_is_given_up(
    by_ssh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "TIMEOUT_S", 0.2)
    [found] = examine_scenario(on("mute"), own)
    assert "no end after 0.2 s" in found.means


@pytest.mark.process
def test_a_clock_that_cannot_be_right_is_a_warning(by_ssh: Path) -> None:
    found = examine_scenario(on("red", "late"), own)
    offsets = {each.host: each for each in found if each.check == "clock offset"}
    assert offsets["red"].state == "ok"
    assert offsets["late"].state == "warn"
    least, most = (float(part.split()[0]) for part in offsets["late"].means.split(" to "))
    assert -101.5 - 60 < least <= most < -98.5


@pytest.mark.process
def test_the_command_prints_failures_first(by_ssh: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(to_toml(on("red", "old", "green", "away")))
    done = invoke("doctor", file)
    assert done.exit_code == 1
    words = [line.split() for line in done.stdout.splitlines()]
    states = [row[0] for row in words if row and row[0] in ("fail", "warn")]
    # Red and green report another version than this one, old a third one, and away nothing.
    assert states == ["fail", "fail", "fail", "warn"]
    assert ["warn", "red,", "old,", "green", "hugepages"] in [row[:5] for row in words]
    assert words[-1] == ["6", "checks", "of", "4", "hosts", "found", "no", "problem."]
    assert "\x1b" not in done.stdout
    listed = json.loads(invoke("doctor", file, "--json").stdout)
    assert {each["host"] for each in listed} == {"red", "old", "green", "away"}


@pytest.mark.process
def test_a_real_report_comes_back(by_ssh: Path, tmp_path: Path) -> None:
    """The stand-in runs the command on this machine, as ssh would on another."""
    entries = [
        {"unit": 0, "host": "here", "device": "lo", "cores": str(min(os.sched_getaffinity(0)))},
        {"unit": 1, "host": "here", "device": "lo0"},
    ]
    scenario = override(on("here", units=2), {"hosts.units": entries})
    file = tmp_path / "own.toml"
    file.write_text(to_toml(scenario))
    found = {each["check"]: each for each in json.loads(invoke("doctor", file, "--json").stdout)}
    assert found["daqloom"]["state"] == "ok"
    assert "unit 1 has here no device lo0" in found["placement"]["means"]
    assert found["lo: link"]["state"] == "ok"
    assert {each["host"] for each in found.values()} == {"here"}


@pytest.mark.process
def test_slurm_without_an_allocation_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    scenario = small(measure__launch="slurm", measure__transport="tcp")
    with pytest.raises(MeasureError, match="scontrol show hostnames : no such file"):
        examine_scenario(scenario, own)


def test_the_disk_has_to_hold_a_recording(tmp_path: Path) -> None:
    """Four readout units of 4096 fragments of 100 B at 1 MHz for 10 s: 4 GB, of which half here."""
    recording = {
        "measure.sink": "file",
        "measure.sink_files": str(tmp_path),
        "measure.duration": "10 s",
        "event.rate": "1 MHz",
    }
    scenario = override(small(), recording)
    found = {each.check: each for each in examine_here(scenario, [0, 1])}
    assert "a run writes 2.0 GB." in found["disk"].means
    absent = override(scenario, {"measure.sink_files": str(tmp_path / "absent")})
    found = {each.check: each for each in examine_here(absent, [0])}
    assert (found["disk"].state, found["disk"].fix) == ("fail", "Make this folder.")
    huge = override(scenario, {"event.rate": "1 GHz", "measure.duration": "10 ks"})
    found = {each.check: each for each in examine_here(huge, [])}
    assert "Free some" in found["disk"].fix


@pytest.mark.parametrize(
    ("files", "needed", "state", "means"),
    [
        ({"operstate": "up", "speed": "100000", "mtu": "9000"}, True, "ok", "100 Gb/s, MTU 9000 B"),
        ({"operstate": "down", "speed": "-1", "mtu": "1500"}, True, "fail", "down, rate unknown"),
        ({"operstate": "down", "speed": "-1", "mtu": "1500"}, False, "ok", "down, rate unknown"),
        ({"operstate": "unknown", "mtu": "65536"}, True, "ok", "rate unknown, MTU 65536 B"),
        ({}, True, "ok", "unknown, rate unknown"),
    ],
)
def test_a_link_is_up_with_its_rate(
    tmp_path: Path, files: dict[str, str], needed: bool, state: str, means: str
) -> None:
    folder = tmp_path / "sys/class/net/eth0"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")
    found = hosts._link(Machine(tmp_path), "eth0", needed=needed)
    assert (found.state, found.check) == (state, "eth0: link")
    assert means in found.means

"""Site in a laboratory: hosts behind a switch, reached by ssh, and the switch as the device under
test, which is set through another command."""

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.lab.laboratory import Laboratory
from daqloom.lab.network import lab_network
from daqloom.scenario.file.show import to_toml
from daqloom.study.run.dataset import open_study
from support.namespaces import NETWORKS

pytestmark = NETWORKS
DAQLOOM = (sys.executable, "-m", "daqloom")
READOUTS, BUILDERS = 3, 1
KEYS = {
    "readout.units": READOUTS,
    "builders.units": BUILDERS,
    "event.size": "30 kB",
    "event.rate": "20 Hz",
    "event.arrivals": "deterministic",
    "measure.duration": "2.5 s",
}
SSH = """#!/bin/sh
# ssh of a site: the host's name is the process that holds its namespace.
while [ "$1" != "--" ]; do shift; done
host=$2; shift 2
exec nsenter --target "$host" {as_user} --net sh -c "$*"
"""


@dataclass(frozen=True)
class Site:
    """Site with its folder and the environment of commands."""

    folder: Path
    laboratory: Laboratory
    environment: dict
    before: int = 0
    """Limit of the builder's port without a measurement."""

    @property
    def port(self):
        """Device of the switch's port towards the builder."""
        links = {queue.link.name: queue.device for queue in self.laboratory.network.queues}
        return links["access.0.down"]

    @property
    def limit(self):
        """Present limit of that port."""
        command = [*self.laboratory.switches.enter, "tc", "-j", "qdisc", "show", "dev", self.port]
        queues = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return next(each["options"]["limit"] for each in queues if each["kind"] == "bfifo")

    def command(self, *words):
        """A command on the first host."""
        return [*self.laboratory.hosts[0].enter, *DAQLOOM, *words]

    def run(self, *words):
        command = self.command(*words)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)


@pytest.fixture
def site(tmp_path):
    tor = {"model": "drop-tail", "port_limit": "300 kB", "queue_packets": 1_000_000}
    keys = {f"network.switch.tor.{key}": value for key, value in tor.items()}
    links = {"network.links.source.rate": "200 Mb/s", "network.links.access.rate": "100 Mb/s"}
    made = load("lab-rack", KEYS | keys | links)
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    as_user = "" if os.geteuid() == 0 else "--user --preserve-credentials"
    program.write_text(SSH.format(as_user=as_user))
    program.chmod(stat.S_IRWXU)
    environment = dict(
        os.environ,
        PATH=f"{program.parent}:{os.environ['PATH']}",
        XDG_STATE_HOME=str(tmp_path / "state"),
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    with Laboratory(lab_network(made)) as laboratory:
        found = Site(tmp_path, laboratory, environment)
        address = laboratory.network.hosts[0].address
        done = found.run("control", "certificates", str(tmp_path / "certs"), "--host", address)
        assert done.returncode == 0, done.stderr
        write(found, address)
        yield replace(found, before=found.limit)


def write(site, address):
    """The scenario and the file of the switch."""
    hosts = [str(host.holder) for host in site.laboratory.hosts]
    through = json.dumps(list(site.laboratory.switches.enter))
    keys = KEYS | {
        "measure.lab": "none",
        "measure.launch": "ssh",
        "measure.hosts": hosts,
        "measure.bind": address,
        "measure.certificates": str(site.folder / "certs"),
        "measure.network": "10.113.0.0/16",
        "measure.device": str(site.folder / "tor.toml"),
        "network.switch.tor.model": "drop-tail",
    }
    text = to_toml(load("lab-rack", keys))
    (site.folder / "site.toml").write_text(text)
    (site.folder / "tor.toml").write_text(
        f'ports = ["{site.port}"]\nsettle = "0.1 s"\n'
        f'[configure]\nadapter = "linux"\nthrough = {through}\n'
        f'[count]\nadapter = "linux"\nthrough = {through}\n'
        '[limits]\naddresses = ["10.113.0.0/16"]\n'
    )


def scenario(site):
    return str(site.folder / "site.toml")


def limited(kilobytes):
    return ("--set", f"network.switch.tor.port_limit={kilobytes} kB")


def test_a_measurement_sets_reads_and_restores_the_switch(site):
    whole = site.run("measure", scenario(site), *limited(200), "--json")
    assert whole.returncode == 0, whole.stderr
    found = json.loads(whole.stdout)["metrics"]
    assert found["packets_dropped"] == 0
    assert found["events_built"] > 20
    assert site.limit == site.before
    small = site.run("measure", scenario(site), *limited(6), "--json")
    assert small.returncode == 0, small.stderr
    found = json.loads(small.stdout)["metrics"]
    assert found["packets_dropped"] == found["drops_by_port"][site.port] > 0
    assert found["retransmission_timeouts"] + found["retransmissions"]["all"] > 0
    assert site.limit == site.before
    assert not list((site.folder / "state").rglob("*.json"))


def test_a_dry_run_prints_each_command_and_runs_none(site):
    done = site.run("measure", scenario(site), *limited(50), "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    through = shlex.join(site.laboratory.switches.enter)
    assert f"{through} tc -j -s qdisc show dev {site.port}" in lines
    assert f"{through} tc -batch -    # bfifo limit 50000 for {site.port}" in lines
    planned = site.run("lab", "plan", scenario(site), *limited(50))
    step = f"tc qdisc change dev {site.port} parent 1:1 handle 10: bfifo limit 50000"
    assert planned.stdout.splitlines() == [step], planned.stderr
    starts = [line for line in lines if line.startswith("ssh ")]
    assert len(starts) == READOUTS + BUILDERS
    for line, host in zip(starts, site.laboratory.hosts, strict=True):
        assert f" -- {host.holder} " in line
        assert "daqloom unit" in " ".join(shlex.split(line))
    assert site.limit == site.before
    assert not (site.folder / "state").exists() or not list((site.folder / "state").rglob("*.json"))


def test_a_switch_after_a_kill_is_refused_and_then_restored(site):
    # Another file for the same switch.
    other = site.folder / "other.toml"
    text = (site.folder / "tor.toml").read_text()
    other.write_text(text.replace("through = [", 'timeout = "9 s"\nthrough = ["env", '))
    by_other = ("--set", f"measure.device={other}")
    command = site.command("measure", scenario(site), *limited(50), "--duration", "60 s")
    quiet: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    running = subprocess.Popen(command, env=site.environment, **quiet)
    try:
        deadline_s = time.monotonic() + 60
        while site.limit == site.before and running.poll() is None:
            assert time.monotonic() < deadline_s
        second = site.run("measure", scenario(site), *limited(40), *by_other)
        assert second.returncode == 1
        assert "another measurement has this device" in second.stderr
        assert site.limit == 50_000
        running.send_signal(signal.SIGKILL)
    finally:
        running.kill()
        running.wait()
    again = site.run("measure", scenario(site), *limited(40), *by_other)
    assert again.returncode == 1
    assert "daqloom lab restore" in again.stderr
    assert site.limit == 50_000
    restored = site.run("lab", "restore")
    assert restored.returncode == 0, restored.stderr
    assert "tor.toml has again what it had" in restored.stdout
    assert f"({site.port}: limit_bytes {site.before})" in restored.stdout
    assert site.limit == site.before
    assert "no switch is left changed" in site.run("lab", "restore").stdout


def test_show_prints_the_state_of_a_port(site):
    done = site.run("lab", "show", str(site.folder / "tor.toml"), "--json")
    assert done.returncode == 0, done.stderr
    port = json.loads(done.stdout)["ports"][site.port]
    assert port["limit_bytes"] == site.before
    assert port["dropped"] == 0


def test_a_lost_host_is_one_sentence(site):
    text = (site.folder / "site.toml").read_text()
    lost = str(site.laboratory.hosts[-1].holder)
    (site.folder / "site.toml").write_text(text.replace(f'"{lost}"', '"999999999"'))
    done = site.run("measure", scenario(site), *limited(50))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert site.limit == site.before


STUDY = """
title = "The smallest buffer of a switch without drops"
scenario = "{scenario}"
methods = ["measure"]
[set]
"measure.duration" = "1.5 s"
[grid]
"event.size" = ["30 kB"]
[search]
key = "network.switch.tor.port_limit"
find = "smallest"
where = "packets_dropped == 0"
method = "measure"
bounds = ["6 kB", "60 kB"]
tolerance = "30 kB"
[repeat]
seeds = 1
"""


def test_a_study_searches_on_the_switch_and_restores_it(site):
    file = site.folder / "search.toml"
    file.write_text(STUDY.format(scenario=scenario(site)))
    store = str(site.folder / "store")
    done = site.run("study", "run", str(file), "--store", store)
    assert done.returncode == 0, done.stderr
    assert site.limit == site.before
    smallest = float(open_study(file, store=store)["boundary"].squeeze())
    assert 6_000 < smallest <= 60_000, "events of 30 kB, which arrive at twice the rate"


def test_a_cell_whose_switch_does_not_answer_is_failed_with_its_reason(site):
    file = site.folder / "search.toml"
    file.write_text(STUDY.format(scenario=scenario(site)))
    device = site.folder / "tor.toml"
    device.write_text(device.read_text().replace(f'ports = ["{site.port}"]', 'ports = ["gone"]'))
    done = site.run("study", "run", str(file), "--store", str(site.folder / "store"))
    assert done.returncode != 0
    assert "gone" in done.stderr
    assert "Traceback" not in done.stderr

"""Builder-paced linear shifting over shaped links: measured in network namespaces, and simulated.

Eight units run in a namespace each, behind links of `network.links.rate` in both directions and one
bridge; `building.jitter` delays each phase. What is compared is the throughput of each way to shift
over that behind a tournament barrier, of runs that take turns, with the same ratio of the
simulation. A table goes to standard error, one JSON object to standard output. Needs root.

With --control-queue, packets of less than 256 B (messages, acknowledgements) have a queue of their
own in each unit's interface, which goes first; simulated, control messages have queue pairs of
their own.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import daqloom
from daqloom.lab.kernel import UNSEEN_BYTES
from daqloom.scenario.schema.models import Scenario

SCENARIO = Path(__file__).parent / "shaped.toml"
OWN = "DAQLOOM_SHAPED_LINKS"
WAYS: dict[str, dict[str, object]] = {
    "tournament": {},
    "none": {"building.barrier": "none"},
    "builder-paced": {"building.barrier": "none", "building.pace": "builder"},
    "and a barrier a round": {"building.pace": "builder", "building.phases_per_barrier": 8},
}
CONTROL = "10.9.0.100"
SSH = """#!/bin/sh
while [ "$1" != "--" ]; do shift; done
shift
host="$1"
shift
exec ip netns exec "$host" sh -c "$*"
"""
"""Stands for ssh: its hosts are namespaces."""


def command(*words: str) -> None:
    """Runs a program; raises RuntimeError with what it complained."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"'{' '.join(words)}' failed: {done.stderr.strip()}")


def shape(device: list[str], rate_bps: int, control_queue: bool) -> None:
    """Limits what a device sends to that rate."""
    words = ["tc", *device[:-1], "qdisc", "replace", "dev", device[-1], "root", "handle", "1:",
             "stab", "overhead", str(UNSEEN_BYTES), "linklayer", "ethernet"]  # fmt: skip
    if not control_queue:
        command(*words, "tbf", "rate", f"{rate_bps}bit", "burst", "20kb", "limit", "20mb")
        return
    command(*words, "htb", "default", "20")
    classes = (("1:", "1:1", rate_bps, 0), ("1:1", "1:10", rate_bps // 10, 0),
               ("1:1", "1:20", rate_bps - rate_bps // 10, 1))  # fmt: skip
    for parent, name, share_bps, priority in classes:
        command("tc", *device[:-1], "class", "add", "dev", device[-1], "parent", parent,
                "classid", name, "htb", "rate", f"{share_bps}bit", "ceil", f"{rate_bps}bit",
                "burst", "20kb", "cburst", "20kb", "prio", str(priority))  # fmt: skip
    # By the higher byte of an IPv4 packet's total length.
    command("tc", *device[:-1], "filter", "add", "dev", device[-1], "parent", "1:", "protocol",
            "ip", "u32", "match", "u16", "0x0000", "0xff00", "at", "2",
            "flowid", "1:10")  # fmt: skip


def plug(namespace: str, address: str, rate_bps: int, control_queue: bool) -> None:
    """Connects a namespace to the bridge by a link of that rate in each direction."""
    port = f"to-{namespace}"
    command("ip", "netns", "add", namespace)
    command("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    for device in ([port], ["-n", namespace, "eth0"]):
        # One segment a packet: else one of 64 kB is a burst on the wire. Few packets: two cores
        # forward those of all.
        command("ip", *device[:-1], "link", "set", device[-1], "mtu", "9000", "gso_max_segs", "1",
                "up")  # fmt: skip
        shape(device, rate_bps, control_queue and len(device) > 1)
    command("ip", "link", "set", port, "master", "bridge")
    command("ip", "-n", namespace, "link", "set", "lo", "up")
    command("ip", "-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")


def build(units: int, rate_bps: int, control_queue: bool) -> None:
    """Makes the bridge and the namespaces; they end with this process's own."""
    command("ip", "link", "set", "lo", "up")
    command("ip", "link", "add", "bridge", "type", "bridge", "stp_state", "0",
            "mcast_snooping", "0")  # fmt: skip
    command("ip", "link", "set", "bridge", "up")
    command("ip", "address", "add", f"{CONTROL}/24", "dev", "bridge")
    for unit in range(units):
        plug(f"u{unit}", f"10.9.0.{unit + 1}", rate_bps, control_queue)


def measured_bps(way: Mapping[str, object], units: int, folder: Path, seconds: int) -> float:
    """The throughput of one run."""
    sets = dict(way) | {
        "measure.launch": "ssh",
        "measure.hosts": json.dumps([f"u{unit}" for unit in range(units)]),
        "measure.bind": CONTROL,
        "measure.certificates": str(folder / "certificates"),
        "measure.network": "10.9.0.0/24",
        "measure.duration": f"{seconds} s",
    }
    words = [sys.executable, "-m", "daqloom", "measure", str(SCENARIO), "--json"]
    for key, value in sets.items():
        words += ["--set", f"{key}={value}"]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"},
        timeout=seconds + 120,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the run failed: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["metrics"]["throughput_bps"])


def simulated_bps(way: Mapping[str, object]) -> float:
    """The throughput of the simulated system, of what is written."""
    result = daqloom.load(str(SCENARIO), way).simulate(seed=1)
    return float(result.metric("written_throughput_bps"))


def run(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measures and simulates all ways."""
    scenario: Scenario = daqloom.load(str(SCENARIO)).scenario
    units = scenario.readout.units
    build(units, int(scenario.network.links.rate), options.control_queue)
    own = {"transport.control_service_level": 1} if options.control_queue else {}
    runs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "ssh").write_text(SSH)
        (folder / "ssh").chmod(0o755)
        command(sys.executable, "-m", "daqloom", "control", "certificates",
                str(folder / "certificates"), "--host", CONTROL)  # fmt: skip
        for turn in range(options.repeats):
            runs.append(
                {name: measured_bps(way, units, folder, options.seconds)
                 for name, way in WAYS.items()}
            )  # fmt: skip
            print(f"turn {turn + 1} of {options.repeats}", file=sys.stderr, flush=True)
    found = {}
    base = simulated_bps(WAYS["tournament"] | own)
    for name, way in WAYS.items():
        simulated = simulated_bps(way | own)
        found[name] = {
            "measured_bps": median(each[name] for each in runs),
            "simulated_bps": simulated,
            "measured_gain": median(each[name] / each["tournament"] for each in runs),
            "simulated_gain": simulated / base,
        }
        print(
            f"{name:21} measured {found[name]['measured_bps'] / 1e9:.3f} Gb/s, simulated "
            f"{simulated / 1e9:.3f} Gb/s; of the tournament: measured "
            f"{found[name]['measured_gain']:.3f}, simulated {found[name]['simulated_gain']:.3f}",
            file=sys.stderr,
        )
    return found


def main() -> None:
    """Runs in a namespace of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="turns of all ways")
    parser.add_argument("--seconds", type=int, default=12, help="of each run, with its warm-up")
    parser.add_argument(
        "--control-queue", action="store_true", help="small packets have a queue of their own"
    )
    options = parser.parse_args()
    if os.environ.get(OWN) != "1":
        if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "tc"))):
            sys.exit("namespaces with shaped links need root, unshare, ip and tc; run it as root")
        words = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
        again = (sys.executable, *sys.argv)
        sys.exit(subprocess.run([*words, *again], env=os.environ | {OWN: "1"}).returncode)
    command("mount", "-t", "tmpfs", "run", "/run")  # names of namespaces, in this mount namespace
    print(json.dumps(run(options), indent=2))


if __name__ == "__main__":
    main()

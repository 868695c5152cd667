"""How long OpenSM takes from a link that fails, or comes back, until all tables are set.

OpenSM runs on ibsim's simulated fabrics: two-level fat trees of 72, 360 and 800 hosts. A cable
between leaf and spine is taken out and put back, some times; from OpenSM's log come the times from
the trap of the switch to `SUBNET UP`. ibsim answers at once: on a real fabric each of the packets
that set a table takes some microseconds more. A table goes to standard error, one JSON object to
standard output. Needs ibsim, libumad2sim and opensm (Debian: ibsim-utils, opensm).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import IO

from daqloom.topology.clos import folded_clos
from daqloom.topology.fabric import End, Fabric

SIMULATED = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
FABRICS = {
    72: {"leaves": 4, "spines": 9, "links": 2, "hosts_per_leaf": 18},
    360: {"leaves": 18, "spines": 10, "links": 2, "hosts_per_leaf": 20},
    800: {"leaves": 40, "spines": 20, "links": 1, "hosts_per_leaf": 20},
}
ENGINES = ("ftree", "updn", "minhop")
MOST_S = 120.0
LINE = re.compile(r"\w+ +\d+ (\d\d:\d\d:\d\d) (\d{6}) \[[0-9A-F]+\] 0x\w\w -> (.*)")
TABLES = re.compile(r"osm_ucast_mgr_process: (\w+) tables configured")


def as_ibsim(fabric: Fabric) -> str:
    """The fabric in the language of ibsim."""
    lines = []
    for index, node in enumerate(fabric.nodes):
        kind = "Hca" if index < len(fabric.hosts) else "Switch"
        lines.append(f'{kind}\t{node.ports} "{node.name}"')
        for port in range(1, node.ports + 1):
            if peer := fabric.peers.get(End(index, port)):
                lines.append(f'[{port}]\t"{fabric.nodes[peer.node].name}"[{peer.port}]')
        lines.append("")
    return "\n".join(lines)


@contextmanager
def subnet(fabric: Fabric, engine: str, folder: Path) -> Iterator[tuple[IO[str], Path]]:
    """ibsim's console and OpenSM's log, with both running."""
    net, log = folder / "net", folder / "osm.log"
    net.write_text(as_ibsim(fabric))
    cache = folder / "cache"
    cache.mkdir()
    nodes = len(fabric.nodes)
    sizes = ["-N", str(2 * nodes), "-S", str(2 * nodes), "-P", str(64 * nodes), "-L", "4096"]
    simulator = subprocess.Popen(
        ["ibsim", *sizes, "-s", str(net)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    manager = None
    try:
        time.sleep(1)
        env = {"LD_PRELOAD": str(SIMULATED), "SIM_HOST": fabric.hosts[0].name,
               "OSM_CACHE_DIR": str(cache)}  # fmt: skip
        manager = subprocess.Popen(
            ["opensm", "-f", str(log), "-R", engine, "-s", "3600", "-d", "2"], env=os.environ | env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert simulator.stdin is not None
        yield simulator.stdin, log
    finally:
        for process in (manager, simulator):
            if process:
                process.terminate()
                process.wait()


def lines_of(log: Path) -> list[tuple[float, str]]:
    """Time of day (s) and text of each line."""
    found = []
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        if hit := LINE.match(line):
            at = datetime.strptime(hit[1], "%H:%M:%S")
            second = 3600 * at.hour + 60 * at.minute + at.second
            found.append((second + int(hit[2]) / 1e6, hit[3]))
    return found


def sweep(console: IO[str] | None, command: str, log: Path) -> tuple[float, str]:
    """From the first trap (or the beginning) to SUBNET UP, and which engine's tables are set."""
    before = len(lines_of(log))
    if console:
        console.write(command + "\n")
        console.flush()
    until = time.monotonic() + MOST_S
    while time.monotonic() < until:
        time.sleep(0.2)
        new = lines_of(log)[before:]
        up = next((at for at, text in new if text == "SUBNET UP"), None)
        if up is not None:
            first = next((at for at, text in new if "Link state change" in text), new[0][0])
            tables = [hit[1] for _, text in new if (hit := TABLES.match(text))]
            return up - first, tables[-1] if tables else "none"
    raise RuntimeError(f"no SUBNET UP within {MOST_S:g} s of {command or 'the start'}")


def measure(hosts: int, engine: str, repeats: int) -> dict[str, object]:
    """Medians over cables that fail and come back."""
    fabric = folded_clos("tree", rate_bps=2 * 10**11, **FABRICS[hosts])
    trunks = [cable for cable in fabric.cables if cable.a.node >= len(fabric.hosts)]
    with (
        tempfile.TemporaryDirectory() as made,
        subnet(fabric, engine, Path(made)) as (console, log),
    ):
        start_s, _ = sweep(None, "", log)
        fails, returns, engines = [], [], []
        for place in range(repeats):
            end = trunks[place * len(trunks) // repeats].a
            name = f'"{fabric.nodes[end.node].name}"[{end.port}]'
            failed_s, tables = sweep(console, f"Unlink {name}", log)
            fails.append(failed_s)
            engines.append(tables)
            returns.append(sweep(console, f"Relink {name}", log)[0])
    return {"hosts": hosts, "engine": engine, "start_s": start_s, "fails_s": median(fails),
            "returns_s": median(returns), "tables_while_broken": sorted(set(engines))}  # fmt: skip


def main() -> None:
    """Measure all sizes and engines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="cables that fail, one by one")
    parser.add_argument("--hosts", type=int, nargs="*", choices=FABRICS, default=list(FABRICS))
    options = parser.parse_args()
    if not all(map(shutil.which, ("ibsim", "opensm"))) or not SIMULATED.exists():
        sys.exit("ibsim and opensm are needed: apt install ibsim-utils opensm")
    rows = []
    for hosts in options.hosts:
        for engine in ENGINES:
            row = measure(hosts, engine, options.repeats)
            rows.append(row)
            print(
                f"{hosts:4} hosts, {engine:7} first sweep {row['start_s']:.3f} s, a link fails "
                f"{row['fails_s']:.3f} s, comes back {row['returns_s']:.3f} s; while broken: "
                f"{', '.join(row['tables_while_broken'])}",
                file=sys.stderr,
                flush=True,
            )
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

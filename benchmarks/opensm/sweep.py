"""How long OpenSM takes from a link that fails, or comes back, until all tables are set.

OpenSM runs on ibsim's simulated fabrics: two-level fat trees of 72, 360 and 800 hosts. A cable
between leaf and spine is taken out and put back, some times; from OpenSM's log come the times from
the trap of the switch to `SUBNET UP`. ibsim answers at once: on a real fabric each of the packets
that set a table takes some microseconds more. A table goes to standard error, one JSON object to
standard output. Needs the Debian packages ibsim-utils and opensm.
"""

from __future__ import annotations

import argparse
import json
import re
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

from fabrics import FABRICS, MOST_S, fat_tree, ibsim, need_opensm

from daqloom.faults.logs.clock import Calendar
from daqloom.faults.logs.opensm_log import LINE, NOTICE, SWEPT, time_of
from daqloom.topology.fabric.broken_cables import between_switches
from daqloom.topology.fabric.fabric import Fabric

ENGINES = ("ftree", "updn", "minhop")
TABLES = re.compile(r"osm_ucast_mgr_process: (\w+) tables configured")


@contextmanager
def subnet(fabric: Fabric, engine: str, folder: Path) -> Iterator[tuple[IO[str], Path]]:
    """ibsim's console and OpenSM's log, with both running."""
    log = folder / "osm.log"
    with ibsim(fabric, folder) as (console, env):
        # -d 2: each line of the log is written at once.
        manager = subprocess.Popen(
            ["opensm", "-f", str(log), "-R", engine, "-s", "3600", "-d", "2"], env=env,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield console, log
        finally:
            manager.terminate()
            manager.wait()


def lines_of(log: Path) -> list[tuple[float, str]]:
    """Time (s) and text of each line."""
    calendar = Calendar(datetime.now().year)
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    hits = [hit for line in lines if (hit := LINE.match(line))]
    return [(at_s, hit["text"]) for hit in hits if (at_s := time_of(hit, calendar)) is not None]


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
        up = next((at for at, text in new if text == SWEPT), None)
        if up is not None:
            first = next((at for at, text in new if NOTICE.match(text)), new[0][0])
            tables = [hit[1] for _, text in new if (hit := TABLES.match(text))]
            return up - first, tables[-1] if tables else "none"
    raise RuntimeError(f"no SUBNET UP within {MOST_S:g} s of {command or 'the start'}")


def measure(hosts: int, engine: str, repeats: int) -> dict[str, object]:
    """Medians over cables that fail and come back."""
    fabric = fat_tree(hosts)
    between = between_switches(fabric)
    with (
        tempfile.TemporaryDirectory() as made,
        subnet(fabric, engine, Path(made)) as (console, log),
    ):
        start_s, _ = sweep(None, "", log)
        fails, returns, engines = [], [], []
        for place in range(repeats):
            end = fabric.cables[between[place * len(between) // repeats]].a
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
    need_opensm()
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

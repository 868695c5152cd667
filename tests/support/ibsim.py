"""A simulated InfiniBand fabric: ibsim, and OpenSM on it. Needs ibsim-utils and opensm."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from daqloom.topology.fabric.fabric import End, Fabric

SIMULATED = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
MOST_S = 120.0
_ENTRY = re.compile(r"(0x[0-9a-f]{4}) ([0-9]{3}) #")


def as_ibsim(fabric: Fabric) -> str:
    """Return the fabric in the language of ibsim."""
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
def ibsim(fabric: Fabric, folder: Path) -> Iterator[tuple[IO[str], dict[str, str]]]:
    """Yield ibsim's console, and the environment of programs that use this fabric."""
    net, cache = folder / "net", folder / "cache"
    net.write_text(as_ibsim(fabric))
    cache.mkdir()
    nodes = 2 * len(fabric.nodes)
    sizes = ["-N", str(nodes), "-S", str(nodes), "-P", str(32 * nodes), "-L", "4096"]
    # Abstract sockets with a name for each fabric, so that several run at a time.
    own = os.environ | {"IBSIM_SOCKNAME": f"daqloom-{os.getpid()}-{folder.name}"[:60]}
    simulator = subprocess.Popen(
        ["ibsim", *sizes, "-s", str(net)], env=own, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert simulator.stdin is not None
        assert simulator.stdout is not None
        while "simulator ready" not in (line := simulator.stdout.readline()):
            assert line, "ibsim has ended"
        yield simulator.stdin, own | {"LD_PRELOAD": str(SIMULATED), "OSM_TMP_DIR": str(folder),
                                      "OSM_CACHE_DIR": str(cache),
                                      "SIM_HOST": fabric.hosts[0].name}  # fmt: skip
    finally:
        simulator.terminate()
        simulator.communicate()


def sweep_once(env: dict[str, str], folder: Path, *options: str) -> Path:
    """Let OpenSM configure the fabric once; return its dump of the tables in `folder`."""
    # -o: one sweep; flag 0x40 has tables written.
    manager = ["opensm", "-f", str(folder / "osm.log"), "-o", "-D", "0x43", *options]
    env = env | {"OSM_TMP_DIR": str(folder)}
    subprocess.run(manager, env=env, check=True, capture_output=True, timeout=MOST_S)
    return folder / "opensm-lfts.dump"


def entries(text: str) -> dict[tuple[str, int], int]:
    """Return the port of each switch (by GUID) to each LID in text such as `opensm-lfts.dump`."""
    found, guid = {}, ""
    for line in text.splitlines():
        if line.startswith("Unicast lids"):
            guid = line.split(" guid ")[1].split()[0]
        elif entry := _ENTRY.match(line):
            found[guid, int(entry[1], 16)] = int(entry[2])
    return found

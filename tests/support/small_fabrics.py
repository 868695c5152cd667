"""For tests: small fabrics and what is known about them."""

from pathlib import Path

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.shapes.clos import folded_clos

SMALL = {
    "network.leaves": 2,
    "network.spines": 2,
    "network.spine_links": 1,
    "network.hosts_per_leaf": 2,
    "network.switch.radix": 4,
    "event.fragment_size": "100 B",
    "event.packing": 4096,
    "event.fragment_sizes": "fixed",
    "readout.streams": 1,
    "run.duration": "2 ms",
    "run.warmup": "0.5 ms",
}
"""Four nodes that push 100 full packets to each other."""
INFINIBAND = override(Scenario(), {"network.technology": "infiniband"})
"""The default of a fabric: linear shifting on LHCb's fat tree."""
LATE = {"building__jitter__kind": "exponential", "building__jitter__mean": "2 us"}
"""Random delays of nodes."""


def harmonic(nodes: int) -> float:
    """Return the mean of the longest of as many exponential delays with mean 1."""
    return sum(1 / k for k in range(1, nodes + 1))


def small(**changes: object) -> Scenario:
    more = {key.replace("__", "."): value for key, value in changes.items()}
    return override(override(INFINIBAND, SMALL), more)  # a choice drops what it excludes


def metrics(result: Result) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in result.metrics.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": number for inner, number in value.items()}
        else:
            flat[name] = value
    return flat


def simulated(scenario: Scenario, seed: int | None = None) -> dict[str, float]:
    """Metrics of a simulation."""
    return metrics(methods.simulate(scenario, seed=seed))


def analysed(scenario: Scenario) -> dict[str, float]:
    """Metrics of the closed forms."""
    return metrics(methods.analyse(scenario))


def way_s(switches: int, size: int) -> float:
    """Return the time that a packet takes besides being put on the wire once."""
    return (switches + 1) * 170e-9 + switches * (130e-9 + min(size, 64) * 8 / 200e9)


def pods(hosts: int, rate_bps: int = 10**11) -> Fabric:
    """Four pods of three leaves and two spines below three cores, with 6 places on a leaf."""
    return folded_clos(
        "pods",
        pods=4,
        leaves=3,
        spines=2,
        cores=3,
        hosts_per_leaf=6,
        links=3,
        core_links=3,
        radix=18,
        hosts=hosts,
        rate_bps=rate_bps,
    )


def ring(folder: Path) -> Scenario:
    """Three switches in a ring with a host each; all go the same way round, buffers hold one
    packet."""
    lines = []
    for i in range(3):
        ahead, behind = (i + 1) % 3, (i - 1) % 3
        lines += [
            f"switchguid=0x{i + 1}({i + 1})",
            f'Switch\t3 "S-000000000000000{i + 1}"\t\t# "sw{i}" base port 0 lid {i + 1} lmc 0',
            f'[1]\t"H-000000000000001{i}"[1](1{i}) \t\t# "h{i}" lid {i + 11} 4xHDR',
            f'[2]\t"S-000000000000000{ahead + 1}"[3]\t\t# "sw{ahead}" lid {ahead + 1} 4xHDR',
            f'[3]\t"S-000000000000000{behind + 1}"[2]\t\t# "sw{behind}" lid {behind + 1} 4xHDR',
            "",
        ]
    for i in range(3):
        lines += [
            f'Ca\t1 "H-000000000000001{i}"\t\t# "h{i}"',
            f'[1](1{i}) \t"S-000000000000000{i + 1}"[1]\t\t'
            f'# lid {i + 11} lmc 0 "sw{i}" lid {i + 1} 4xHDR',
            "",
        ]
    (folder / "ibnetdiscover.txt").write_text("\n".join(lines))
    tables = []
    for i in range(3):
        tables.append(f"Unicast lids [0-13] of switch Lid {i + 1} guid 0x{i + 1:016x} ('sw{i}'):")
        for to in range(3):
            port = 1 if to == i else 2
            tables.append(
                f"0x{to + 11:04x} {port:03d} # Channel Adapter portguid 0x{16 + to:016x}: 'h{to}'"
            )
        tables.append("3 valid lids dumped")
    (folder / "opensm-lfts.dump").write_text("\n".join(tables) + "\n")
    return override(
        INFINIBAND,
        {
            "network.shape": "imported",
            "network.dumps": str(folder),
            "network.switch.buffer": "4160 B",
            "event.packing": 1000,
            "readout.streams": 1,
            "building.barrier": "none",
            "run.duration": "10 ms",
        },
    )


def daqpipe(**changes: object) -> Scenario:
    """Four nodes, of which the even ones read out and the odd ones build unless folded."""
    fixed: dict[str, object] = {
        "building__protocol": "daqpipe",
        "hosts__message_cost": "100 ns",
        "hosts__polling_delay": "300 ns",
        "building__credits": 1,
        "building__parallel_sends": 1,
        "builders__folded": False,
    }
    return small(**(fixed | changes))


def from_text(folder: Path, text: str) -> Scenario:
    (folder / "own.toml").write_text(text)
    return load(folder / "own.toml")

"""A simulation that would not fit into the machine's memory is refused with the estimate."""

import subprocess
import sys

import pytest

from daqloom.deployment.scenarios import load as load_scenario
from daqloom.deployment.scenarios import override
from daqloom.scenario import ScenarioError
from daqloom.simulate import memory
from daqloom.simulate.memory import machine_bytes, needed_bytes, peak_bytes
from daqloom.study.methods import methods
from support.small_fabrics import small

LEAST_SHARE, MOST_SHARE = 0.6, 1.6
GROWTH = """
import sys
from daqloom.deployment.scenarios import load
from daqloom.simulate.memory import peak_bytes
from daqloom.simulate.run import simulate

def run(units):
    return simulate(load(sys.argv[1], [*sys.argv[4:], *(each.format(units) for each in KEYS)]))

KEYS, UNITS = sys.argv[2].split(";"), int(sys.argv[3])
run(24)
before = peak_bytes()
cost = run(UNITS).engine
print(peak_bytes() - before, sum(cost[name] for name in cost if name.endswith("memory_bytes")))
"""
"""Prints the additional memory of a large system, measured and reported."""


def growth(name: str, keys: str, number: int, overrides: list[str]) -> list[int]:
    command = [sys.executable, "-c", GROWTH, name, keys, str(number), *overrides]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(each) for each in done.stdout.split()]


FABRIC = [
    "network.shape=fat-tree",
    "network.leaves=50",
    "network.spines=4",
    "network.spine_links=1",
    "network.hosts_per_leaf=24",
    "network.switch.radix=60",
    "network.links.rate=HDR",
    "event.groups=[]",
    "run.duration=10 us",
    "run.warmup=1 us",
]


@pytest.mark.parametrize(
    ("name", "keys", "units", "overrides"),
    [
        (
            "atlas-lab",
            "readout.units={0};builders.units={0}",
            400,
            ["event.size=400 kB", "event.rate=10 MHz", "run.duration=60 us", "run.warmup=1 us"],
        ),
        ("lhcb-500", "readout.units={0}", 500, [*FABRIC, "event.rate=0 Hz"]),
        (
            "lhcb-500",
            "readout.units={0}",
            300,
            [*FABRIC, "event.rate=0 Hz", "building.meps_per_phase=3", "readout.streams=2"],
        ),
        ("daqpipe-fattree72", "readout.units={0}", 1200, FABRIC),
    ],
)
@pytest.mark.process
def test_the_estimate_is_the_memory_of_the_engine(name, keys, units, overrides) -> None:
    scenario = load_scenario(name, [*overrides, *(key.format(units) for key in keys.split(";"))])
    grown, in_parts = growth(name, keys, units, overrides)
    assert LEAST_SHARE * grown < needed_bytes(scenario, scenario.nodes) < MOST_SHARE * grown
    # Shifting and DAQPIPE also have state of each pair of units.
    assert (0.7 * grown if name == "atlas-lab" else 0) < in_parts < 1.1 * grown


FLOW = ["flows.a.source=every", "flows.a.destination=0", "flows.a.size=1 kB"]


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("atlas-lab", ["readout.units=200", "builders.units=200", "event.rate=1 kHz"]),
        ("atlas-lab", ["readout.units=200", "builders.units=200", "flows.a.transport=udp"]),
        ("lhcb-500", [*FABRIC, "readout.units=400", "event.rate=0 Hz"]),
    ],
)
@pytest.mark.process
def test_outstanding_messages_of_flows_are_counted(name: str, overrides: list[str]) -> None:
    """Event building takes the same memory with few and with many of them."""
    keys, many = "flows.a.outstanding={0}", 2000
    short = ["run.duration=60 us", "run.warmup=1 us", *FLOW, *overrides]
    few, most = (load_scenario(name, [*short, keys.format(n)]) for n in (24, many))
    grown = growth(name, keys, many, short)[0]
    more = needed_bytes(most, few.nodes) - needed_bytes(few, few.nodes)
    assert LEAST_SHARE * grown < more < MOST_SHARE * grown


def test_connections_of_flows_and_events_that_wait_are_counted() -> None:
    rack = load_scenario("small-rack")
    hosts = rack.nodes
    one = override(rack, FLOW)
    to_any = override(one, ["flows.a.destination=random"])
    more = needed_bytes(to_any, hosts) - needed_bytes(one, hosts)
    assert more == memory.CONNECTION_BYTES * hosts * (hosts - 1)
    keys = ["event.rate=100 MHz", "event.size=48 B", "run.duration=10 s"]
    rack = load_scenario("atlas-lab", keys)
    idle = override(rack, ["event.rate=1 MHz"])
    # 32 links of 25 Gb/s carry 32 × 25e9 / (8 × 48) = 2.083 GHz of such events.
    assert needed_bytes(rack, rack.nodes) == needed_bytes(idle, idle.nodes)
    flooded = override(rack, ["event.size=4800 B"])  # 20.83 MHz
    waiting = (100e6 - 32 * 25e9 / (8 * 4800)) * 10
    more = needed_bytes(flooded, flooded.nodes) - needed_bytes(idle, idle.nodes)
    assert more == pytest.approx(64 * waiting)


@pytest.mark.process
def test_the_peak_is_that_of_the_process_and_not_of_its_parent() -> None:
    ballast = b"x" * 400_000_000
    code = "from daqloom.simulate.memory import peak_bytes; print(peak_bytes())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 5_000_000 < int(done.stdout) < len(ballast) <= peak_bytes()


@pytest.mark.parametrize("scenario", [load_scenario("small-rack"), small()])
def test_a_too_large_simulation_is_refused_with_the_estimate(scenario, monkeypatch) -> None:
    monkeypatch.setattr(memory, "machine_bytes", lambda: 1000)
    with pytest.raises(ScenarioError, match=r"needs about .*B of memory .* this machine has 1 kB"):
        methods.simulate(scenario)


def test_a_container_has_less_memory_than_its_machine(tmp_path, monkeypatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "LIMIT_FILE", limit)
    whole = machine_bytes()
    limit.write_text("max\n")
    assert machine_bytes() == whole
    limit.write_text("4096\n")
    assert machine_bytes() == 4096

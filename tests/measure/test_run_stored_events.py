"""The examples of a sink that accepts events and of a storage unit, behind real builder units."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from daqloom import _engine
from daqloom.buffers import StorageRules
from daqloom.data import Mep, check_file, packets
from support.measure import live_nodes
from support.repository import ROOT

pytestmark = pytest.mark.process

HUNG_S = 60.0
EVENTS = 300
SEED = 3
SHARE = 0.2
READOUTS, BUILDERS = [0, 1], [2, 3]


def node(unit: int, run: str) -> _engine.LiveNode:
    config = _engine.LiveConfig()
    config.unit, config.run, config.token = unit, run, b"0123456789abcdef"
    config.slots = _engine.RunSlots(readouts=READOUTS, builders=BUILDERS)
    config.protocol, config.sink = _engine.Protocol.pull, _engine.SinkKind.user
    config.pull_rules = _engine.PullRules(
        arrivals=_engine.Arrivals(rate_hz=1000.0),
        event_size=_engine.EventSize(mean=4000),
        concurrent_events=4,
    )
    config.packing, config.fragment_bytes = 1, [2000] * len(READOUTS)
    config.stream_buffer = config.output_buffer = 4_000_000
    config.when_full = _engine.WhenFull.wait
    return _engine.LiveNode(config)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def run() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def nodes(stack: ExitStack, run: str) -> list[_engine.LiveNode]:
    """Two readout and two builder units, connected and not yet started."""
    members = [*READOUTS, *BUILDERS]
    made = []
    for unit in members:
        made.append(node(unit, run))
        stack.callback(made[-1].shut)
    addresses = [(unit, made[unit].prepare(0, members)) for unit in members]
    with ThreadPoolExecutor() as pool:
        assert list(pool.map(lambda each: each.connect(addresses, HUNG_S), made)) == [[]] * 4
    return made


def started(stack: ExitStack, name: str, *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    stack.enter_context(process)  # waits for its end
    stack.callback(process.kill)
    return process


def storage_unit(stack: ExitStack, path: Path) -> tuple[subprocess.Popen[str], str]:
    """The process of a storage unit, and its address."""
    unit = started(stack, "storage_unit.py", path)
    assert unit.stdout is not None
    return unit, unit.stdout.readline().strip()


def until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + HUNG_S
    while not holds():
        assert time.monotonic() < deadline_s


def build(stack: ExitStack, nodes: list[_engine.LiveNode], run: str, *addresses: str) -> list[int]:
    """Build events with these storage units; return the numbers that should be stored."""
    sinks = [
        started(stack, "storage_sink.py", f"daqloom/{run}/{unit}/output", SHARE, SEED, *addresses)
        for unit in BUILDERS
    ]
    builders = [nodes[unit] for unit in BUILDERS]

    def counted(name: str) -> int:
        return sum(getattr(each.counters(), name) or 0 for each in builders)

    for each in nodes:
        each.start(0)
    until(lambda: counted("meps_built") >= EVENTS)
    with ThreadPoolExecutor() as pool:
        events = max(pool.map(live_nodes.halt, nodes))
    until(lambda: counted("meps_processed") == events)
    for each in nodes:
        each.shut()
    rules = StorageRules(units=1, accepted=SHARE)
    expected = [event for event in range(events) if rules.accepts(event, SEED)]
    said = [sink.communicate(timeout=HUNG_S)[0].split() for sink in sinks]
    for column, total in ((0, events), (2, len(expected)), (4, len(expected))):
        assert sum(int(words[column]) for words in said) == total
    return expected


def stored(unit: subprocess.Popen[str], path: Path) -> list[int]:
    """End the storage unit, check the content of its file, and return the events in it."""
    unit.send_signal(signal.SIGINT)
    out, _ = unit.communicate(timeout=HUNG_S)
    numbers = sorted(Mep.decode(packet).number for _, packet in packets(path))
    assert out == f"{len(numbers)} MEPs\n"
    if numbers:
        checked = check_file(path, generated=True)
        assert checked.faults == []
        assert checked.recognised == len(READOUTS) * len(numbers)
    return numbers


def test_storage_units_get_the_accepted_events_of_all_builder_units(
    stack: ExitStack, nodes: list[_engine.LiveNode], run: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "a.mep", tmp_path / "b.mep"]
    units, addresses = zip(*(storage_unit(stack, path) for path in paths), strict=True)
    expected = build(stack, nodes, run, *addresses)
    assert len(expected) > 20
    for number, (unit, path) in enumerate(zip(units, paths, strict=True)):
        assert stored(unit, path) == [event for event in expected if event % 2 == number]


def test_events_of_a_storage_unit_that_is_lost_go_to_the_next(
    stack: ExitStack, nodes: list[_engine.LiveNode], run: str, tmp_path: Path
) -> None:
    lost, dead = storage_unit(stack, tmp_path / "a.mep")
    unit, address = storage_unit(stack, tmp_path / "b.mep")
    lost.kill()
    lost.wait()
    expected = build(stack, nodes, run, dead, address)
    assert stored(unit, tmp_path / "b.mep") == expected

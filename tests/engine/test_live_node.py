"""Nodes of the engine in this process: what Python may expect of them."""

import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from daqloom import _engine
from support.measure import live_nodes

UNITS = 2
HUNG_S = 60.0


def node(unit: int, run: str) -> _engine.LiveNode:
    config = _engine.LiveConfig()
    config.unit, config.run, config.token = unit, run, b"0123456789abcdef"
    units = list(range(UNITS))
    config.slots = _engine.RunSlots(readouts=units, builders=units)
    config.packing, config.fragment_bytes = 100, [200] * UNITS
    config.stream_buffer = config.output_buffer = 4_000_000
    config.when_full = _engine.WhenFull.wait  # the consumer may be kept from its processor
    return _engine.LiveNode(config)


@pytest.fixture
def nodes() -> Iterator[list[_engine.LiveNode]]:
    """Connected, and not yet started."""
    run = f"test-{secrets.token_hex(4)}"
    made = [node(unit, run) for unit in range(UNITS)]
    try:
        members = list(range(UNITS))
        addresses = [(unit, made[unit].prepare(0, members)) for unit in members]
        with ThreadPoolExecutor() as pool:
            missing = pool.map(lambda each: each.connect(addresses, HUNG_S), made)
            assert list(missing) == [[], []]
        yield made
    finally:
        for each in made:
            each.shut()


def halt(nodes: list[_engine.LiveNode]) -> int:
    with ThreadPoolExecutor() as pool:
        return max(pool.map(live_nodes.halt, nodes))


def built(nodes: list[_engine.LiveNode]) -> int:
    return sum(each.counters().meps_built for each in nodes)


def test_events_are_built_while_no_python_thread_can_run(nodes):
    for each in nodes:
        each.start(0)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e6)  # this thread keeps the interpreter to itself
    try:
        begin, deadline_s = built(nodes), time.monotonic() + HUNG_S
        while built(nodes) < begin + 100 and time.monotonic() < deadline_s:
            pass
        assert built(nodes) >= begin + 100
    finally:
        sys.setswitchinterval(interval_s)


def test_all_that_was_begun_is_built_and_right(nodes):
    for each in nodes:
        each.start(0)
    deadline_s = time.monotonic() + HUNG_S
    while built(nodes) < 100 and time.monotonic() < deadline_s:
        pass
    next_mep = halt(nodes)
    counters = [each.counters() for each in nodes]
    assert sum(each.meps_built for each in counters) == next_mep >= 100
    assert sum(each.meps_checked for each in counters) == next_mep
    assert sum(each.meps_wrong for each in counters) == 0
    assert sum(each.mfps_received for each in counters) == UNITS * next_mep


def test_an_epoch_is_prepared_connected_and_started_in_this_order(nodes):
    nodes[0].start(0)
    with pytest.raises(ValueError, match="started once"):
        nodes[0].start(0)
    with pytest.raises(ValueError, match="connected once"):
        nodes[0].connect([], 1.0)
    with pytest.raises(ValueError, match="without readout or builder units"):
        nodes[0].prepare(1, [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unit": 7}, "unit 7 has no slot"),
        ({"streams": 0}, "0 streams; give 1 to 32"),
        ({"stream_buffer": 100}, "stream_buffer of 100 bytes; a round of 2 builder units"),
        ({"output_buffer": 100}, "output_buffer of 100 bytes; a multi-event packet"),
        ({"fragment_bytes": [100]}, "1 sizes of fragments for 2 readout units"),
        ({"packing": 65_536}, "packing of 65536"),
        ({"slots": {"builders": [70_000, 1]}}, "unit 70000 in a slot"),
    ],
)
def test_impossible_nodes_are_refused_in_a_sentence(change, reason):
    config = _engine.LiveConfig()
    slots = {"readouts": [0, 1], "builders": [0, 1]}
    config.slots = _engine.RunSlots(**slots | change.get("slots", {}))
    config.fragment_bytes = [100, 100]
    for name, value in change.items():
        if name != "slots":
            setattr(config, name, value)
    with pytest.raises(ValueError, match=reason):
        _engine.LiveNode(config)

"""Ends of a measured run: processing delays, readout cards, several consumers, samplers."""

import os
import time
from collections.abc import Iterator

import pytest

import daqloom
from daqloom._engine import LiveNode
from daqloom.buffers import BufferReader
from daqloom.control.protocol.messages import Configure
from daqloom.data import Mep
from daqloom.measure.configure import live_node
from daqloom.results.result import Result
from daqloom.scenario.file.load import load

pytestmark = pytest.mark.process

HUNG_S = 100


def both(**changes: object) -> tuple[Result, Result]:
    """Simulated and measured results of the laptop with `changes`."""
    keys = {key.replace("__", "."): value for key, value in changes.items()}
    scenario = daqloom.load("laptop", keys)
    return scenario.simulate(), scenario.measure()


def test_processing_delays_bound_the_rate_as_in_the_simulation() -> None:
    simulated, measured = both(
        event__packing=100,
        event__rate="40 kHz",
        event__fragment_size="100 B",
        builders__processing=[{"mean": "40 ms"}, {"mean": "60 ms"}],
        builders__buffer="220 kB",  # room for 5 MEPs of 4 MFPs
        run__duration="2 s",
        run__warmup="500 ms",
        measure__duration="3 s",
        measure__warmup="500 ms",
    )
    bound_hz = 4 * 5 * 100 / 0.1  # units, MEPs, events, delays
    for result in (simulated, measured):
        assert (result.metric("event_rate_hz") or 0) <= 1.02 * bound_hz
        assert result.metric("events_discarded")
    ratio = (measured.metric("event_rate_hz") or 0) / (simulated.metric("event_rate_hz") or 1)
    assert 0.75 < ratio < 1.1


def test_late_acknowledgements_of_cards_stop_the_trigger_as_in_the_simulation() -> None:
    simulated, measured = both(
        event__packing=100,
        event__rate="100 kHz",  # an MFP per ms
        event__fragment_size="100 B",
        readout__card__buffer="5 kB",  # 0.5 ms
        readout__card__acknowledge__mean="100 us",
        readout__card__spike_probability=0.05,
        readout__card__spike__mean="4500 us",
        run__duration="4 s",
        run__warmup="500 ms",
        measure__duration="4 s",
        measure__warmup="500 ms",
        measure__when_full="wait",
    )
    # A spike of any of the 4 cards stops the trigger for 4 ms after an MFP.
    expected_s = (1 - 0.95**4) * 4e-3
    for result in (simulated, measured):
        stopped_s = (result.metric("trigger_stopped_share.acknowledge") or 0) * 3.5
        meps = (result.metric("events_built") or 0) / 100
        assert stopped_s / meps == pytest.approx(expected_s, rel=0.12)
        assert meps > 500


@pytest.fixture
def unit(request: pytest.FixtureRequest) -> Iterator[tuple[LiveNode, str]]:
    """A unit alone in its run, with the keys of the parameter, and the name of its output."""
    keys = {"readout.units": 1, "event.packing": 20, "event.rate": "4 kHz"}
    keys |= {"building.barrier": "none", "measure.when_full": "wait"}
    scenario = load("laptop", keys | request.param)
    document = scenario.model_dump(mode="json", exclude_unset=True)
    run = f"ends-{os.getpid()}"
    order = Configure(order=1, unit=0, run=run, units=1, heartbeat_s=1.0, scenario=document)
    node = live_node(order, bytes(16), "127.0.0.1:0")
    node.connect([(0, node.prepare(0, [0]))], 60)
    node.lease(1 << 50, time.monotonic() + HUNG_S, 0)
    yield node, f"daqloom/{run}/0/output"
    node.shut()


USER = {"measure.sink": "user", "measure.output_alignment": "4 KiB"}


def take(reader: BufferReader, meps: int) -> list[int]:
    """Read and acknowledge MEPs. Return their numbers."""
    numbers = []
    while len(numbers) < meps:
        piece = reader.next()
        if piece is None:
            assert reader.wait(HUNG_S)
            assert not reader.is_at_end
            continue
        number, packet = piece
        assert Mep.decode(packet).number == number
        assert reader.acknowledge()
        numbers.append(number)
    return numbers


@pytest.mark.parametrize("unit", [USER | {"measure.consumers": "exclusive"}], indirect=True)
def test_exclusive_consumers_divide_the_output(unit: tuple[LiveNode, str]) -> None:
    node, name = unit
    readers = [BufferReader(name) for _ in range(3)]
    sampler = BufferReader(name, samples=True)
    node.start(0)
    taken = [take(reader, 5) for _ in range(4) for reader in readers]
    every = [number for numbers in taken for number in numbers]
    assert len(set(every)) == len(every) == 60
    sampled = take(sampler, 2)
    assert sampled == sorted(sampled)
    counters = node.counters()
    assert counters.consumers_attached == 3
    assert counters.consumers_revoked == 0
    assert set(counters.consumer_meps) == {"0", "1", "2"}
    assert counters.sampler_meps["0"] >= 2


@pytest.mark.parametrize("unit", [USER | {"measure.consumers": "shared"}], indirect=True)
def test_shared_consumers_each_read_the_whole_output(unit: tuple[LiveNode, str]) -> None:
    node, name = unit
    readers = [BufferReader(name) for _ in range(2)]
    node.start(0)
    for _ in range(3):
        assert take(readers[0], 10) == take(readers[1], 10)


TIMED = {"measure.consumers": "exclusive", "measure.consumer_timeout": "1 s"}


@pytest.mark.parametrize("unit", [USER | TIMED], indirect=True)
def test_a_consumer_that_acknowledges_nothing_loses_its_events(unit: tuple[LiveNode, str]) -> None:
    node, name = unit
    idle, busy = BufferReader(name), BufferReader(name)
    node.start(0)
    while idle.next() is None:
        assert idle.wait(HUNG_S)
    while not idle.is_revoked:
        take(busy, 1)
    assert not idle.acknowledge()
    assert idle.is_at_end
    assert idle.next() is None
    assert node.counters().consumer_returned["0"] >= 1


@pytest.mark.parametrize("unit", [{"measure.sink": "discard"}], indirect=True)
def test_a_sampler_watches_a_run_whose_events_are_discarded(unit: tuple[LiveNode, str]) -> None:
    node, name = unit
    with pytest.raises(ConnectionError, match="not offered"):
        BufferReader(name)
    sampler = BufferReader(name, samples=True)
    node.start(0)
    assert len(take(sampler, 3)) == 3

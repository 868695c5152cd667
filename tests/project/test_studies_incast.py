"""Incast and what helps against it: the shipped studies against the rule, the triangles, rounds.

Every rack here is a point of a shipped study, with two of its twelve builders. A fragment of
31 250 B is 22 packets; a ring of the switch holds 256. What all sources send at once enters at
I = 120 Gb/s and leaves at O = 10 Gb/s meanwhile, so that n packets need n (1 - O/I) places.
"""

from typing import Any

import pytest

from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.file.load import load_study
from daqloom.study.methods import methods
from daqloom.study.run.plan import plan

RING, FRAGMENT, FIRST_WINDOW = 256, 22, 10  # packets
UPLINK, ACCESS = 120e9, 10e9
THRESHOLD = 65  # packets from which on DCTCP marks, at 10 Gb/s

MITIGATIONS = load_study("incast-mitigations")
FRAGMENTS = load_study("outstanding-fragments")

AS_IS = "as it is"
RACK = "RACK and tail-loss probes"
FAST = "links of 40 Gb/s"
DEEP = "rings of 4096 packets"
DCTCP = "DCTCP, marks at 65 packets"
STATIC = "static windows of 2 segments"
CREDITS = "8 fragments requested at a time"


def rack(variant: str, sources: int, **more: Any) -> Scenario:
    """A point of the study, with two builders, run for 0.8 s after 0.7 s of warm-up."""
    counts, variants = MITIGATIONS.axes
    place = counts.coordinates("readout.units", MITIGATIONS.base).index(sources)
    point = MITIGATIONS.scenario((place, variants.labels.index(variant)))
    few = {
        "builders.units": 2,
        "event.rate": f"{point.event.rate / 6} Hz",
        "run.warmup": "0.7 s",
        "run.duration": "1.5 s",
    }
    return override(point, few | {key.replace("__", "."): v for key, v in more.items()})


def keeps_up(result: Result) -> bool:
    """Whether nothing is lost and no event waits but for those that came just before it."""
    lost = [result.metric(name) for name in ("packets_dropped", "retransmission_timeouts")]
    return lost == [0, 0] and (result.metric("events_waiting") or 0) < 10


def collapses(result: Result, scenario: Scenario) -> bool:
    """Whether drops and time-outs leave less than a quarter of what was asked for."""
    offered = scenario.event.rate * scenario.event.size * 8
    counts = [result.metric(name) or 0 for name in ("packets_dropped", "retransmission_timeouts")]
    return min(counts) > 0 and (result.metric("throughput_bps") or 0) < offered / 4


@pytest.mark.parametrize("name", ["incast-mitigations", "incast-first-windows"])
def test_every_point_of_the_studies_can_be_planned(name: str) -> None:
    planned = plan(load_study(name), None)
    assert planned.refused == 0, planned.first_refusal


def test_the_fragment_and_the_rates_are_those_of_this_page() -> None:
    point = rack(AS_IS, 64)
    assert methods.analyse(point).analysis["overhead"]["packets"] == 64 * FRAGMENT
    assert (point.network.links.uplink.rate, point.network.links.access.rate) == (UPLINK, ACCESS)
    assert point.network.switch.tor.queue_packets == RING
    assert point.transport.initial_window == FIRST_WINDOW
    marks = rack(DCTCP, 64).network.switch.tor.ecn_threshold
    assert marks == THRESHOLD * (1500 + 18)


@pytest.mark.parametrize(
    ("variant", "sources"),
    [
        (AS_IS, 8),  # 176 packets
        (STATIC, 64),  # 128 packets
        (CREDITS, 240),  # 8 · 22 packets
        (DEEP, 128),  # 2816 of 4096 packets
    ],
)
def test_windows_that_fit_lose_nothing_and_keep_the_throughput(variant: str, sources: int) -> None:
    point = rack(variant, sources)
    assert (methods.analyse(point).metric("incast_margin_bytes") or -1) > 0
    result = methods.simulate(point, seed=1)
    assert keeps_up(result)
    # The latency of an event alone, but for what it waits for the other builder's.
    alone = methods.analyse(point).metric("collection_latency_s.min")
    assert result.metric("collection_latency_s.p50") == pytest.approx(alone, rel=0.05)


@pytest.mark.parametrize(
    ("variant", "sources"),
    [
        (AS_IS, 32),  # 704 packets
        (STATIC, 192),  # 384 packets
        (DEEP, 240),  # 5280 of 4096 packets
        (FAST, 32),  # 704 packets, of which a third leaves as they come in
    ],
)
def test_windows_that_do_not_fit_collapse(variant: str, sources: int) -> None:
    point = rack(variant, sources)
    assert (methods.analyse(point).metric("incast_margin_bytes") or 0) < 0
    result = methods.simulate(point, seed=1)
    assert collapses(result, point)
    assert (result.metric("collection_latency_s.p99") or 0) > 0.2


@pytest.mark.parametrize(("access", "fits", "overflows"), [(10e9, 12, 16), (40e9, 16, 24)])
def test_faster_links_move_the_threshold_as_far_as_the_triangle(
    access: float, fits: int, overflows: int
) -> None:
    # 256 / (22 · 11/12) = 12.7 sources at 10 Gb/s, 256 / (22 · 2/3) = 17.5 at 40 Gb/s.
    most = RING / (FRAGMENT * (1 - access / UPLINK))
    assert fits < most < overflows
    variant = AS_IS if access == ACCESS else FAST
    assert keeps_up(methods.simulate(rack(variant, fits), seed=1))
    assert collapses(methods.simulate(rack(variant, overflows), seed=1), rack(variant, overflows))


@pytest.mark.parametrize("variant", [AS_IS, STATIC])
def test_the_smallest_ring_without_a_loss_is_the_derived_one(variant: str) -> None:
    # A burst of whole fragments: the triangle, 64 · 22 · 11/12 = 1291. Windows that are refilled as
    # they drain: the rule, 64 · 2 less the 7 packets in the pipe.
    sources = 64
    pipe = methods.analyse(rack(STATIC, sources)).analysis["incast"]["bdp_bytes"] / 1518
    burst = sources * FRAGMENT * (1 - ACCESS / UPLINK)
    needed = burst if variant == AS_IS else sources * 2 - pipe
    enough = rack(variant, sources, network__switch__tor__queue_packets=round(1.04 * needed))
    assert keeps_up(methods.simulate(enough, seed=1))
    less = rack(variant, sources, network__switch__tor__queue_packets=round(0.96 * needed))
    assert (methods.simulate(less, seed=1).metric("packets_dropped") or 0) > 0


def test_recovery_by_time_repairs_some_losses_and_prevents_none() -> None:
    old, new = (methods.simulate(rack(variant, 16), seed=1) for variant in (AS_IS, RACK))
    assert (new.metric("packets_dropped") or 0) > (old.metric("packets_dropped") or 0) > 0
    assert (new.metric("throughput_bps") or 0) > 5 * (old.metric("throughput_bps") or 1)


# DCTCP: windows that have learned, and windows that have not


def test_dctcp_that_has_learned_keeps_the_queue_small_where_other_windows_overflow() -> None:
    sources = 16
    assert sources * FRAGMENT * (1 - ACCESS / UPLINK) > RING
    one = {"builders__units": 1, "event__rate": "1.25 kHz"}
    result = methods.simulate(rack(DCTCP, sources, **one), seed=1)
    assert keeps_up(result)
    # Marked from 65 packets on, all windows together hold those, the pipe's, and two for each
    # source: one in the round trip until it hears, one in that in which it does. A burst puts all
    # of them into the queue.
    pipe = methods.analyse(rack(DCTCP, sources)).analysis["incast"]["bdp_bytes"] / 1518
    queue = (result.metric("buffer_peak_bytes.tor") or 0) / 1518
    assert THRESHOLD < queue < THRESHOLD + pipe + 2 * sources
    assert (result.metric("packets_marked") or 0) > 0
    assert collapses(
        methods.simulate(rack(AS_IS, sources, **one), seed=1), rack(AS_IS, sources, **one)
    )


def first_event(variant: str, sources: int, **more: Any) -> Result:
    """One event of new connections."""
    alone = {"builders__units": 1, "event__arrivals": "deterministic", "event__rate": "1 Hz"}
    whole = {"run__warmup": "0 s", "run__duration": "1.9 s"}
    return methods.simulate(rack(variant, sources, **alone, **whole, **more), seed=1)


def test_dctcp_is_in_time_where_first_windows_and_marks_fit() -> None:
    # Slow start adds a packet for each of the first 65 that are not marked: 160 + 65 < 256.
    assert 16 * FIRST_WINDOW + THRESHOLD < RING
    result = first_event(DCTCP, 16)
    assert keeps_up(result)
    assert result.metric("collection_latency_s.max") == pytest.approx(
        16 * 22 * 1538 * 8 / 10e9, rel=0.1
    )
    # 293 of 320 packets have not left when the last one comes.
    assert 32 * FIRST_WINDOW * (1 - ACCESS / UPLINK) > RING
    result = first_event(DCTCP, 32)
    assert (result.metric("packets_dropped") or 0) >= 32 * FIRST_WINDOW * 11 // 12 - RING
    assert (result.metric("retransmission_timeouts") or 0) > 0
    assert (result.metric("collection_latency_s.max") or 0) > 0.2
    # Later events find windows that fit.
    assert keeps_up(
        methods.simulate(rack(DCTCP, 32, run__warmup="1 s", run__duration="1.5 s"), seed=1)
    )
    assert 32 * 2 + THRESHOLD < RING
    assert keeps_up(first_event(DCTCP, 32, transport__initial_window=2))


# Fragments requested in parallel


def requested(fragments: int, variant: str = "rings of 512 packets") -> Result:
    """A point of the study with one builder, whose connections have had an event before."""
    (variants,) = FRAGMENTS.axes[1:]
    point = FRAGMENTS.scenario((0, variants.labels.index(variant)))
    few = {"builders.units": 1, "event.rate": "5 Hz", "event.arrivals": "deterministic"}
    run = {"run.warmup": "1 s", "run.duration": "3 s"}
    return methods.simulate(
        override(point, few | run | {"building.outstanding_fragments": fragments}), seed=1
    )


@pytest.mark.parametrize(("fragments", "rounds"), [(500, 1), (1000, 2), (1500, 3)])
def test_a_burst_of_more_than_the_ring_takes_as_many_rounds_as_rings(
    fragments: int, rounds: int
) -> None:
    # 512 places take 512 · 12/11 = 558 packets of a burst. What is lost comes again all at once
    # 200 ms later, then 400 ms, 800 ms …: (2^(rounds - 1) - 1) · 200 ms in all.
    a_round = 512 / (1 - ACCESS / UPLINK)
    assert rounds - 1 < fragments / a_round <= rounds
    waited = (2 ** (rounds - 1) - 1) * 0.2
    result = requested(fragments)
    assert result.metric("collection_latency_s.p50") == pytest.approx(waited, abs=0.02)
    assert ((result.metric("packets_dropped") or 0) > 0) == (rounds > 1)


def test_no_kernel_repairs_a_lone_packet_before_the_time_out() -> None:
    modern = requested(1200, "rings of 768, RACK and TLP")
    assert modern.metric("retransmissions.fast") in (0, None)
    assert (modern.metric("collection_latency_s.mean") or 0) >= 0.2


def test_one_fragment_at_a_time_costs_a_round_trip_each() -> None:
    one, many = (requested(n).metric("collection_latency_s.mean") for n in (1, 100))
    assert one is not None
    assert many is not None
    # 100 at a time keep the link busy: 2000 · (1100 + 70 + 20) B at 10 Gb/s.
    assert many == pytest.approx(2000 * (1100 + 52 + 38) * 8 / 10e9, rel=0.05)
    # One at a time: at least three links there and back of 1 µs each.
    assert one > 2000 * 6e-6

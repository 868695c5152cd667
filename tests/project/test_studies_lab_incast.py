"""The incast of a laboratory, simulated: its two studies, against what windows and links say."""

import math
from typing import Any

import pytest

from daqloom.deployment.scenarios import override
from daqloom.lab.kernel import queues
from daqloom.lab.network import lab_network
from daqloom.results.result import Result
from daqloom.study.file.load import load_study
from daqloom.study.methods import methods
from daqloom.study.run.plan import plan

SENDERS = 12
REPLY = 23  # packets: ⌈32 kB / 1448 B⌉
SOURCE, UPLINK, ACCESS = 40e6, 480e6, 20e6
FULL, ACK, REQUEST = 8 * 1538, 8 * (52 + 38), 8 * (48 + 52 + 38)  # bits on the wire
SERVICE_S = FULL / ACCESS
DELAYS_S = 6 * 1e-6  # three links there and three back
SPREAD_S = 2e-3  # of the instants at which readout units answer

THRESHOLD, COLLAPSE = load_study("lab-incast"), load_study("lab-collapse")


def with_buffer(segments: int, packets: int) -> Result:
    """The point of the threshold's study with that window, with that buffer."""
    point = override(
        THRESHOLD.base,
        THRESHOLD.overrides((0,))
        | {
            "transport.static_window": f"{1448 * segments} B",
            "network.switch.tor.queue_packets": packets,
        },
    )
    return methods.simulate(point, seed=1)


def collapse(variant: str, packets: int) -> Result:
    """A point of the collapse's study, simulated for 6 s."""
    buffers, variants = COLLAPSE.axes
    index = (
        buffers.coordinates("network.switch.tor.queue_packets", COLLAPSE.base).index(packets),
        variants.labels.index(variant),
    )
    return methods.simulate(override(COLLAPSE.scenario(index), {"run.duration": "6 s"}), seed=1)


def metric(result: Result, name: str) -> Any:
    found = result.metric(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["lab-incast", "lab-collapse"])
@pytest.mark.parametrize("quick", [False, True])
def test_every_point_can_be_planned_and_made_in_a_laboratory(name: str, quick: bool) -> None:
    study = load_study(name, quick=quick)
    planned = plan(study, None)
    assert planned.refused == 0, planned.first_refusal
    for index in study.indices():
        network = lab_network(study.scenario(index))
        assert len(network.hosts) == SENDERS + 1
        assert list(queues(network.queues, network.mtu_bytes))


def test_the_smallest_buffer_that_is_searched_is_more_than_a_port_keeps_its_rate_by() -> None:
    assert THRESHOLD.search is not None
    low, _ = THRESHOLD.search.range
    network = lab_network(
        override(THRESHOLD.scenario((0,)), {"network.switch.tor.port_limit": f"{low:.0f} B"})
    )
    assert sum("bfifo limit 3" in line for line in queues(network.queues, network.mtu_bytes)) > 0


def test_the_links_carry_the_requested_rate() -> None:
    # A study cuts points short whose events outrun the links.
    for study in (THRESHOLD, COLLAPSE):
        point = study.scenario(next(iter(study.indices())))
        bound_hz = metric(methods.analyse(point), "event_rate_bound_hz")
        assert 0.98 * bound_hz < point.event.rate < bound_hz


@pytest.mark.parametrize("segments", [4, 8, 16])
def test_static_windows_need_their_sum_less_the_packet_that_is_elsewhere(segments: int) -> None:
    # An acknowledgement of two packets frees two. When the second of them comes, so many more
    # packets have left the port as are sent in the time of
    elsewhere_s = (
        ACK / ACCESS + ACK / UPLINK + ACK / SOURCE + 2 * FULL / SOURCE + FULL / UPLINK + DELAYS_S
    )
    left = math.floor(elsewhere_s / SERVICE_S)
    assert left == 1
    needed = SENDERS * segments - left
    assert metric(with_buffer(segments, needed), "packets_dropped") == 0
    assert metric(with_buffer(segments, needed - 1), "packets_dropped") > 0


def test_whole_replies_need_a_buffer_for_the_packets_before_the_last_arrival() -> None:
    # The packet comes when 22 full packets have passed the link of a source before it, and later by
    # at most the spread of the answers and of the requests for them.
    soonest_s = (REPLY - 1) * FULL / SOURCE
    latest_s = soonest_s + FULL / SOURCE + FULL / UPLINK + SPREAD_S + SENDERS * REQUEST / ACCESS
    most = SENDERS * REPLY - math.floor(soonest_s / SERVICE_S)
    least = SENDERS * REPLY - math.ceil(latest_s / SERVICE_S)
    assert (least, most) == (260, 265)
    assert metric(with_buffer(24, most), "packets_dropped") == 0
    assert metric(with_buffer(24, least - 1), "packets_dropped") > 0


@pytest.mark.parametrize(
    ("variant", "packets"),
    [("CUBIC", 998), ("static windows of 8 segments", 98)],  # of 276 and of 96
)
def test_a_buffer_that_holds_all_packets_keeps_the_rate(variant: str, packets: int) -> None:
    result = collapse(variant, packets)
    assert metric(result, "packets_dropped") == metric(result, "retransmission_timeouts") == 0
    assert metric(result, "throughput_bps") == pytest.approx(6 * 384e3 * 8, rel=0.01)
    # A round is as long as its packets take, of each reply 22 full ones and one of 144 B, less what
    # the shaper's bucket lets go at once.
    round_s = SENDERS * (22 * FULL + 8 * (144 + 52 + 38)) / ACCESS
    least_s = round_s - 8 * 3076 / ACCESS
    assert least_s < metric(result, "collection_latency_s.p50") < round_s + SPREAD_S


@pytest.mark.parametrize("variant", ["CUBIC", "static windows of 8 segments"])
def test_where_a_sender_has_less_than_two_places_rounds_wait_for_timeouts(variant: str) -> None:
    result = collapse(variant, 18)
    rounds = metric(result, "events_built")
    assert metric(result, "retransmission_timeouts") > rounds > 0
    assert metric(result, "collection_latency_s.p50") > 0.2
    assert metric(result, "throughput_bps") < 0.7 * 6 * 384e3 * 8

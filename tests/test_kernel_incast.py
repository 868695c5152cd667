"""The parts of benchmarks/kernel_incast that need neither root nor namespaces."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks" / "kernel_incast"
sys.path.insert(0, str(FOLDER))

from comparison import (  # noqa: E402
    PACKETS_PER_REPLY,
    REPLY_WIRE_BYTES,
    Load,
    Outcome,
    Point,
    checks,
    close,
    comparable,
    drop_threshold,
    middle_run,
)
from kernel import BenchmarkError, hosts_speed, parse_hz, robust_deviation  # noqa: E402
from network import parse_bottleneck, parse_tcp_counters  # noqa: E402


def outcome(**figures: float) -> Outcome:
    return Outcome(**(dict.fromkeys(Outcome.__dataclass_fields__, 0) | figures))


def test_a_reply_of_32_kb_is_23_packets_with_38_bytes_of_ethernet_and_52_of_headers_each() -> None:
    assert PACKETS_PER_REPLY == 23
    assert REPLY_WIRE_BYTES == 32_000 + 23 * (52 + 38)


def test_what_is_offered_at_once_is_the_window_but_never_more_than_the_reply() -> None:
    assert Load("cubic").offered_packets == 20 * 23
    assert Load("static", 8).offered_packets == 20 * 8
    assert Load("static", 64).offered_packets == 20 * 23


@pytest.mark.parametrize("threshold", [11, 12, 57, 99, 100])
def test_the_bisection_finds_the_smallest_buffer_without_drops(threshold: int) -> None:
    asked: list[int] = []

    def drops(packets: int) -> bool:
        asked.append(packets)
        return packets < threshold

    assert drop_threshold(drops, 10, 100) == threshold
    assert len(asked) <= 2 + 7  # both ends, then log2 of 90


def test_the_bisection_refuses_a_range_that_does_not_hold_the_threshold() -> None:
    with pytest.raises(ValueError, match="start lower"):
        drop_threshold(lambda packets: packets < 5, 10, 100)
    with pytest.raises(ValueError, match="start higher"):
        drop_threshold(lambda packets: packets < 500, 10, 100)


def test_every_figure_of_the_middle_run_is_a_median_by_itself() -> None:
    runs = [outcome(drops=d, goodput_bps=g) for d, g in ((1, 30.0), (9, 10.0), (2, 20.0))]
    assert middle_run(runs) == outcome(drops=2, goodput_bps=20.0)


def test_less_than_five_percent_off_is_close_and_six_is_not() -> None:
    assert close("x", 100, 104.9).within
    assert close("x", 100, 95.1).within
    assert not close("x", 100, 106).within
    assert not close("x", 0, 1).within


def test_a_factor_two_either_way_is_comparable_and_rare_events_are_not_judged() -> None:
    assert comparable("x", 40, 80).within
    assert comparable("x", 40, 20).within
    assert comparable("x", 40, 81).within is False
    assert comparable("x", 40, 0).within is False
    assert comparable("x", 3, 19, least=20).within is None
    assert comparable("x", 3, 20, least=20).within is False


def test_time_outs_are_compared_only_where_the_kernel_dropped() -> None:
    point = Point(Load("cubic"), 50)
    same = outcome(goodput_bps=1e8)
    assert [check.figure for check in checks(point, same, same)] == ["cubic, 50: goodput (b/s)"]
    dropping = outcome(goodput_bps=1e8, drops=7, timeouts=30)
    assert [check.within for check in checks(point, dropping, dropping)] == [True, True]


def test_counters_of_tcp_are_read_with_their_group_and_other_groups_are_left() -> None:
    text = (
        "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n"
        "IpExt: InOctets\nIpExt: 99\n"
        "Tcp: RtoAlgorithm RetransSegs\nTcp: 1 -5\n"
    )
    assert parse_tcp_counters(text) == {
        "TcpExtSyncookiesSent": 0,
        "TcpExtTCPTimeouts": 3,
        "TcpRtoAlgorithm": 1,
        "TcpRetransSegs": -5,
    }


def test_the_queue_is_found_below_the_token_bucket() -> None:
    shown = [
        {"kind": "tbf", "packets": 5, "drops": 9, "qlen": 1},
        {"kind": "pfifo", "packets": 5, "drops": 2, "qlen": 1},
    ]
    assert parse_bottleneck(shown) == {"sent": 5, "dropped": 2, "waiting": 1}
    with pytest.raises(RuntimeError, match="no pfifo"):
        parse_bottleneck(shown[:1])


def test_the_kernels_ticks_are_read_from_its_configuration_and_250_without_it() -> None:
    assert parse_hz("CONFIG_HZ_1000=y\nCONFIG_HZ=1000\n") == 1000
    assert parse_hz("# CONFIG_HZ=100\n") == 250


def test_hosts_are_described_by_spacing_jitter_and_emission_of_the_warm_rounds() -> None:
    # Three hosts, 13 rounds of 1 s, of which the first ten do not count; the second host begins
    # 100 us after the first, the third 300, 290 and 310 us; each takes 50 us for 1000 bytes.
    offsets = [[0.0] * 13, [100e-6] * 13, [0.5] * 10 + [300e-6, 290e-6, 310e-6]]
    hosts = [
        {
            "asked_s": [i + offset for i, offset in enumerate(host)],
            "answered_s": [i + offset + 50e-6 for i, offset in enumerate(host)],
        }
        for host in offsets
    ]
    speed = hosts_speed(hosts, 1000)
    assert speed.spacing_s == pytest.approx(300e-6 / 2)
    assert speed.jitter_s == pytest.approx(0, abs=1e-9)  # the median host does not wander
    assert speed.emission_bps == pytest.approx(8 * 1000 / 50e-6)
    with pytest.raises(BenchmarkError, match="too few rounds"):
        hosts_speed([{name: times[:11] for name, times in host.items()} for host in hosts], 1000)


def test_one_round_that_another_program_held_up_is_no_jitter() -> None:
    # Distances from the median 10: 2, 1, 0, 1, 990; the median of them is 1.
    assert robust_deviation([8, 9, 10, 11, 1000]) == pytest.approx(1 / 0.6745)


def test_the_scenario_has_the_loads_that_the_kernel_gets() -> None:
    scenario = tomllib.loads((FOLDER / "incast.toml").read_text())
    assert scenario["event"]["size"] == "640 kB"
    assert scenario["readout"]["units"] == 20
    assert scenario["building"]["concurrent_events"] == 1
    assert scenario["network"]["switch"]["tor"]["pace"] == "200 Mb/s"

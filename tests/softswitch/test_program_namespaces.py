"""The real switch over packet sockets: a burst that fits its ring, one that does not, a cable that
goes down."""

from pathlib import Path

import pytest

from support.softswitch.switches import RUNS, in_a_namespace

pytestmark = pytest.mark.process

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

FILE = (
    RUNS
    + """
[ports.dcm]
device = "net_af_packet0,iface=sdcm,framecnt=2048"
[ports.ros]
device = "net_af_packet1,iface=sros,framecnt=2048"
[rings.dcm]
port = "dcm"
to = "10.0.0.1"
rate = "50 Mb/s"
packets = 1000
"""
)


def test_bursts_are_held_or_counted(tmp_path: Path) -> None:
    file = tmp_path / "switch.toml"
    file.write_text(FILE)
    told = in_a_namespace("softswitch.switch_inside", str(file))
    # A ring of 1000 holds the burst of 800: all came, in order.
    assert (told["large"]["packets"], told["large"]["drops"]) == (800, 0)
    assert told["large_came"] == [number % 251 for number in range(800)]
    assert told["large"]["peak_packets"] <= 800
    # One of 300 does not: what is missing is what was counted, and what was held is what it can.
    assert told["small"]["packets"] + told["small"]["drops"] == 1600
    assert told["small"]["drops"] > 0
    assert told["small_came"] == told["small"]["packets"] - 800
    assert told["after_down"] == [0, 1, 2, 3, 4]
    assert told["last"]["ports"][1]["frames"]["full"] == told["small"]["drops"]
    assert told["last"]["memory"]["free_buffers"] == 8191

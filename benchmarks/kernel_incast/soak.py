"""Many events through the real software switch: none may be lost, whatever its pace is set to.

Twenty senders answer one receiver in rounds of 640 kB, through a ring that holds a round and a pace
that may change under way. Prints one JSON object: rounds, drops, time-outs, and the bits on the
wire of all rounds against the pace.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from comparison import BOTTLENECK_BPS, REPLY_WIRE_BYTES, SENDERS, Load, Point
from kernel import BenchmarkError, KernelSide
from simulation import ROOT, find_daqloom

ENOUGH = 1000
"""Packets that the ring holds: more than the 460 of a round."""
SHARES = (1.0, 0.5, 0.8, 0.25)
"""Of the usual pace, one after the other."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000, help="events (default 10000)")
    parser.add_argument("--seconds", type=int, default=600, help="at most (default 600)")
    parser.add_argument(
        "--change-every", type=float, default=0, help="change the pace so often (s; 0: never)"
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "kernel_incast")
    parser.add_argument("--daqloom", help="the daqloom command (default: .venv/bin, then PATH)")
    options = parser.parse_args()
    try:
        print(json.dumps(soak(options), indent=2))
    except (BenchmarkError, OSError, ValueError) as error:
        print(f"software switch soak: {error}", file=sys.stderr)
        return 1
    return 0


def soak(options: argparse.Namespace) -> dict[str, Any]:
    software = options.daqloom or find_daqloom()
    with KernelSide(options.build.resolve(), software) as kernel:
        point = Point(Load("cubic"), ENOUGH)
        question = {"change_every_s": options.change_every, "shares": SHARES}
        told = kernel.ask(point, options.seconds, options.rounds, **question)
    counters = told["tcp"]
    seconds = told["elapsed_s"]
    wire_bps = 8 * SENDERS * REPLY_WIRE_BYTES * len(told["latency_s"]) / seconds
    return {
        "rounds": len(told["latency_s"]),
        "seconds": seconds,
        "changes_of_the_pace": told["changes"],
        "drops": told["dropped"],
        "timeouts": counters.get("TcpExtTCPTimeouts", 0),
        "retransmissions": counters.get("TcpRetransSegs", 0),
        "longest_round_s": max(told["latency_s"]),
        "wire_rate_of_rounds_to_pace": None if told["changes"] else wire_bps / BOTTLENECK_BPS,
    }


if __name__ == "__main__":
    sys.exit(main())

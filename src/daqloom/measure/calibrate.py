"""What this machine's hosts cost a simulation: the time of messages, wake-ups, copies and timers.

Two processes send a message to and fro by the transport of real units. Where the machine allows
network namespaces, each is in one of its own, with a cable to one bridge, as units are in a
laboratory; else they use loopback.
"""

import json
import secrets
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from daqloom.measure import MeasureError
from daqloom.measure.child import Child
from daqloom.measure.namespaces import Namespaces
from daqloom.scenario.quantities import RATE, TIME

ROUNDS = 5000
RESTED = 600
"""Rounds with a pause before each."""
PAUSE_S = 5e-3
WARMUP_ROUNDS = 500
MESSAGE_BYTES = 24
"""A request, without what the transport adds."""
COPY_BYTES = 1 << 20
TIMEOUT_S = 60.0
TIMER_S = 1e-3
TIMERS = 300
PROGRAM = (sys.executable, "-m", "daqloom.measure.calibrate")


@dataclass(frozen=True)
class Calibration:
    """What was measured."""

    transport: str
    where: str
    """"namespaces" or "loopback"."""
    message_cost_s: float
    """CPU time of a message, sent or received."""
    latencies_s: tuple[float, ...]
    """From when a message is posted until the other unit has heard of it, without the CPU time of
    both: the wake-up of a core that has rested, and the kernel's own way."""
    busy_latency_s: float
    """The median of the same where messages follow each other, so that no core falls asleep."""
    copies_bps: float
    """Rate at which a thread copies from memory to memory (bit/s)."""
    timer_lateness_s: tuple[float, ...]
    """What a process is woken later than it has asked for, in ascending order."""

    @property
    def latency_s(self) -> float:
        """The median of `latencies_s`."""
        return statistics.median(self.latencies_s)

    def table(self, latencies: str = "") -> str:
        """Return the `[hosts]` table of a scenario; `latencies` is a file that has them."""
        latency = f'{{ kind = "histogram", file = "{latencies}" }}' if latencies else None
        latency = latency or f'{{ mean = "{_rounded(self.latency_s)}" }}'
        return "\n".join(
            [
                "[hosts]",
                f'message_cost = "{_rounded(self.message_cost_s)}"',
                f"latency = {latency}",
                f'local_rate = "{RATE.format(float(f"{self.copies_bps:.3g}"))}"',
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        late = self.timer_lateness_s
        return {
            "transport": self.transport,
            "where": self.where,
            "message_cost_s": self.message_cost_s,
            "latency_s": _told(self.latencies_s),
            "busy_latency_s": self.busy_latency_s,
            "copies_bps": self.copies_bps,
            "timer_lateness_s": _told(late),
        }


def _told(values_s: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values_s)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))],
        "max": ordered[-1],
    }


def _rounded(value_s: float) -> str:
    return TIME.format(float(f"{value_s:.3g}"))


def calibrate(transport: str = "tcp", congestion: str = "", *, rounds: int = ROUNDS) -> Calibration:
    """Measure this machine. Raises MeasureError."""
    from daqloom._engine import copies_per_second

    with ExitStack() as stack:
        enter: list[tuple[str, ...]] = [(), ()]
        nodes, where = ["127.0.0.1", "127.0.0.1"], "loopback"
        if transport != "shm":  # whose units find each other by sockets of one namespace
            with suppress(MeasureError):
                spaces = stack.enter_context(Namespaces(2))
                enter = [host.enter for host in spaces.hosts]
                nodes, where = spaces.addresses, "namespaces"
        token = secrets.token_hex(16)
        ends = [
            stack.enter_context(
                Child(
                    [*enter[end], *PROGRAM, transport, nodes[end], congestion, str(1 - end)],
                    "this machine could not be measured",
                )
            )
            for end in range(2)
        ]
        first, second = _echo(ends, token, rounds)
    cost_s = (first["cost_s"] + second["cost_s"]) / 2
    return Calibration(
        transport,
        where,
        cost_s,
        one_way(first["rested_s"], cost_s),
        statistics.median(one_way(first["busy_s"], cost_s)),
        8 * copies_per_second(COPY_BYTES),
        timer_lateness(),
    )


def one_way(round_trips_s: Sequence[float], cost_s: float) -> tuple[float, ...]:
    """Return what half of each round trip takes besides the CPU time of its two messages."""
    return tuple(max(0.0, each / 2 - 2 * cost_s) for each in round_trips_s)


def timer_lateness() -> tuple[float, ...]:
    """Return what this process is woken later than asked for (s), in ascending order."""
    found = []
    for _ in range(TIMERS):
        due_s = time.monotonic() + TIMER_S
        time.sleep(TIMER_S)
        found.append(time.monotonic() - due_s)
    return tuple(sorted(found))


def _echo(ends: Sequence[Child], token: str, rounds: int) -> list[dict[str, Any]]:
    """Let the two ends find each other, and send messages."""
    for end in ends:
        end.say(token)
    addresses = [end.hear() for end in ends]
    for end, other in zip(ends, addresses[::-1], strict=True):
        end.tell({"other": other, "rounds": rounds, "rested": RESTED})
    return [end.answer() for end in ends]


def main(transport: str, node: str, congestion: str, begins: str) -> int:
    """Be one end of the pair."""
    from daqloom._engine import Echo

    token = bytes.fromhex(sys.stdin.readline())
    try:
        end = Echo.make(transport, node, congestion, token, begins == "1", MESSAGE_BYTES)
        print(end.address().hex(), flush=True)
        asked = json.loads(sys.stdin.readline())
        end.connect(bytes.fromhex(asked["other"]), TIMEOUT_S)
        end.run(WARMUP_ROUNDS, 0.0, TIMEOUT_S)
        busy = end.run(asked["rounds"], 0.0, TIMEOUT_S)
        rested = end.run(asked["rested"], PAUSE_S, TIMEOUT_S)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    cost_s = busy.processor_s / busy.messages
    told = {"cost_s": cost_s, "busy_s": busy.times_s, "rested_s": rested.times_s}
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""What this machine's hosts cost a simulation: the time of messages and their bytes, of data that
are made, copied and checked, of wake-ups and timers.

Processes send a message to and fro by the transport of real units: two, or one that asks several
others at once, as a builder unit asks readout units. Where the machine allows network namespaces,
each is in one of its own, with a cable to one bridge, as units are in a laboratory; else they use
loopback.
"""

import json
import os
import secrets
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from daqloom.machine.child import Child
from daqloom.machine.namespaces import Namespaces
from daqloom.results.errors import MeasureError
from daqloom.scenario.quantities import RATE, TIME

ROUNDS = 5000
RESTED = 600
"""Rounds with a pause before each."""
PAUSE_S = 5e-3
WARMUP_ROUNDS = 500
MESSAGE_BYTES = 24
"""A request, without what the transport adds."""
LONG_BYTES = 16_000
"""A message that tells what its bytes cost."""
LONG_ROUNDS = 1000
FRAGMENT_BYTES, PACKING = 1000, 500
"""Of the data that are made and checked: as `laptop` has them."""
MOST_CORES = 1024
TIMEOUT_S = 60.0
TIMER_S = 1e-3
TIMERS = 300
PROGRAM = (sys.executable, "-m", "daqloom.machine.calibrate")


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
    both: the wake-up of a core that has rested, and the kernel's own way; with several units also
    what each waits for the others, with whom it shares cores."""
    busy_latency_s: float
    """The median of the same where messages follow each other, so that no core falls asleep."""
    copies_bps: float
    """Rate at which a thread copies from memory to memory, while all cores do (bit/s)."""
    timer_lateness_s: tuple[float, ...]
    """What a process is woken later than it has asked for, in ascending order."""
    generated_bps: float
    """Rate at which a source writes generated data, likewise (bit/s)."""
    checked_bps: float
    """Rate at which a sink checks them, likewise (bit/s)."""
    byte_cost_s: float | None = None
    """CPU time of a byte of a message, sent or received; none in shared memory, where the sender
    copies and nobody else does anything."""
    units: int = 2

    @property
    def latency_s(self) -> float:
        """The median of `latencies_s`."""
        return statistics.median(self.latencies_s)

    @property
    def send_bps(self) -> float:
        """Rate at which a core makes and sends data (bit/s)."""
        sending_s = 1 / self.copies_bps if self.byte_cost_s is None else self.byte_cost_s / 8
        return 1 / (1 / self.generated_bps + sending_s)

    @property
    def receive_bps(self) -> float:
        """Rate at which a core takes in and checks data (bit/s)."""
        return 1 / (1 / self.checked_bps + (self.byte_cost_s or 0.0) / 8)

    def table(self, latencies: str = "") -> str:
        """Return the `[hosts]` table of a scenario; `latencies` is a file that has them."""
        latency = f'{{ kind = "histogram", file = "{latencies}" }}' if latencies else None
        if not latency and self.units > 2:  # which vary
            mean = _rounded(statistics.fmean(self.latencies_s))
            latency = f'{{ kind = "exponential", mean = "{mean}" }}'
        latency = latency or f'{{ mean = "{_rounded(self.latency_s)}" }}'
        return "\n".join(
            [
                "[hosts]",
                f'message_cost = "{_rounded(self.message_cost_s)}"',
                f'send_rate = "{_rounded_rate(self.send_bps)}"',
                f'receive_rate = "{_rounded_rate(self.receive_bps)}"',
                f"latency = {latency}",
                f'local_rate = "{_rounded_rate(self.copies_bps)}"',
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        late = self.timer_lateness_s
        return {
            "transport": self.transport,
            "where": self.where,
            "units": self.units,
            "message_cost_s": self.message_cost_s,
            "byte_cost_s": self.byte_cost_s,
            "latency_s": _told(self.latencies_s),
            "busy_latency_s": self.busy_latency_s,
            "copies_bps": self.copies_bps,
            "generated_bps": self.generated_bps,
            "checked_bps": self.checked_bps,
            "send_bps": self.send_bps,
            "receive_bps": self.receive_bps,
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


def _rounded_rate(value_bps: float) -> str:
    return RATE.format(float(f"{value_bps:.3g}"))


def calibrate(
    transport: str = "tcp", congestion: str = "", *, units: int = 2, rounds: int = ROUNDS
) -> Calibration:
    """Measure this machine. Raises MeasureError."""
    from daqloom._engine import measure_data_rates

    with ExitStack() as stack:
        enter: list[tuple[str, ...]] = [()] * units
        nodes, where = ["127.0.0.1"] * units, "loopback"
        over_network = transport != "shm"
        if over_network:  # else units find each other by sockets of one namespace
            with suppress(MeasureError):
                spaces = stack.enter_context(Namespaces(units))
                enter = [host.enter for host in spaces.hosts]
                nodes, where = spaces.addresses, "namespaces"
        token = secrets.token_hex(16)
        ends = [
            stack.enter_context(
                Child(
                    [
                        *enter[unit],
                        *PROGRAM,
                        *(transport, nodes[unit], congestion),
                        *(str(units), str(unit)),
                    ],
                    "this machine could not be measured",
                )
            )
            for unit in range(units)
        ]
        first, *others = _echo(ends, token, rounds)
    cost_s, long_s = (
        (first[of] + statistics.fmean(other[of] for other in others)) / 2
        for of in ("cost_s", "long_cost_s")
    )
    cores = len(os.sched_getaffinity(0))
    data = measure_data_rates(min(cores, MOST_CORES), PACKING, FRAGMENT_BYTES)
    # The kernel of each side copies each byte once: long messages cost at least so much more than
    # short ones, whose wake-ups may hide it.
    copied_s = 1 / data.copied_bytes_per_s
    byte_cost_s = max(copied_s, (long_s - cost_s) / (LONG_BYTES - MESSAGE_BYTES))
    return Calibration(
        transport,
        where,
        cost_s,
        _latencies(first["rested"], [other["rested"] for other in others], cost_s),
        statistics.median(_latencies(first["busy"], [other["busy"] for other in others], cost_s)),
        8 * data.copied_bytes_per_s,
        timer_lateness(),
        8 * data.generated_bytes_per_s,
        8 * data.checked_bytes_per_s,
        byte_cost_s if over_network else None,
        units,
    )


def _latencies(
    first: Mapping[str, Any], others: Sequence[Mapping[str, Any]], cost_s: float
) -> tuple[float, ...]:
    """Return how long messages took besides the CPU time of both ends: half of round trips between
    two units; of several, which answer at once, each tells when it has heard, and the first posts
    to one after the other."""
    if len(others) == 1:
        return one_way(first["times_s"], cost_s)
    return tuple(
        max(0.0, each - (place + 2) * cost_s)
        for place, other in enumerate(others)
        for each in other["heard_s"]
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
    """Let the units find each other, and send messages."""
    for end in ends:
        end.say(token)
    addresses = [end.hear() for end in ends]
    for unit, end in enumerate(ends):
        others = addresses[:1] if unit else addresses[1:]
        end.tell({"others": others, "rounds": rounds, "rested": RESTED})
    return [end.answer() for end in ends]


def main(transport: str, node: str, congestion: str, units: str, unit: str) -> int:
    """Be one of the units."""
    from daqloom._engine import Echo

    token = bytes.fromhex(sys.stdin.readline())
    try:
        end = Echo.make(transport, node, congestion, token, int(units), int(unit), LONG_BYTES)
        print(end.address().hex(), flush=True)
        asked = json.loads(sys.stdin.readline())
        end.connect([bytes.fromhex(other) for other in asked["others"]], TIMEOUT_S)
        end.run(WARMUP_ROUNDS, MESSAGE_BYTES, 0.0, TIMEOUT_S)
        busy = end.run(asked["rounds"], MESSAGE_BYTES, 0.0, TIMEOUT_S)
        rested = end.run(asked["rested"], MESSAGE_BYTES, PAUSE_S, TIMEOUT_S)
        long = end.run(LONG_ROUNDS, LONG_BYTES, 0.0, TIMEOUT_S)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    costs = {
        "cost_s": busy.processor_s / busy.messages,
        "long_cost_s": long.processor_s / long.messages,
    }
    told = {
        name: {"times_s": found.times_s, "heard_s": found.latencies_s}
        for name, found in (("busy", busy), ("rested", rested))
    }
    print(json.dumps(costs | told), flush=True)
    sys.stdin.read()  # its connections end with it, and others may still be at their last rounds
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

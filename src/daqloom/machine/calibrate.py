"""Calibration of a simulation's hosts on this machine: CPU time of messages and bytes, rates of
generating, copying and checking data, lateness of wake-ups and timers.

Processes exchange messages by the transport of real units: two processes, or one that requests from
several others together, as a builder unit does. If the machine allows it, each process is in a
network namespace with a cable to one bridge, as in a laboratory; otherwise they use loopback."""

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

from daqloom.base import lazy
from daqloom.machine.child import Child
from daqloom.machine.namespaces import Namespaces
from daqloom.results.errors import MeasureError
from daqloom.scenario.quantities import RATE, TIME, Dimension

with lazy.imports():
    from daqloom import _engine

ROUNDS = 5000
RESTED = 600
"""Number of rounds with a pause before each one."""
PAUSE_S = 5e-3
WARMUP_ROUNDS = 500
MESSAGE_BYTES = 24
"""Size of a request without the transport's headers."""
LONG_BYTES = 16_000
"""Size of the messages that measure the cost of bytes."""
LONG_ROUNDS = 1000
FRAGMENT_BYTES, PACKING = 1000, 500
"""Size and number of fragments in generated and checked data, as in the scenario `laptop`."""
MOST_CORES = 1024
TIMEOUT_S = 60.0
TIMER_S = 1e-3
TIMERS = 300
PROGRAM = (sys.executable, "-m", "daqloom.machine.calibrate")
JSON_FIELDS = (
    *("transport", "where", "units", "message_cost_s", "byte_cost_s", "latency_s"),
    *("busy_latency_s", "copies_bps", "generated_bps", "checked_bps", "send_bps", "receive_bps"),
)


@dataclass(frozen=True)
class Calibration:
    """Result of a calibration."""

    transport: str
    where: str
    """"namespaces" or "loopback": the way in which the processes were connected."""
    message_cost_s: float
    """CPU time to send or receive a message (s)."""
    latencies_s: tuple[float, ...]
    """Times from post to notification, without the CPU time of both ends: wake-up of an idle core
    and the kernel's path; with several units, also the wait for others on the same core."""
    busy_latency_s: float
    """Median latency of messages in quick succession, which keep cores awake (s)."""
    copies_bps: float
    """Copy rate of one thread from memory to memory, while all cores copy (bit/s)."""
    timer_lateness_s: tuple[float, ...]
    """Lateness of timers, in ascending order."""
    generated_bps: float
    """Rate at which one source writes generated data, while all cores do so (bit/s)."""
    checked_bps: float
    """Rate at which one sink checks data, while all cores do so (bit/s)."""
    byte_cost_s: float | None = None
    """CPU time to send or receive a byte of a message (s); None in shared memory, where only the
    sender copies."""
    units: int = 2

    @property
    def latency_s(self) -> float:
        """Median of `latencies_s`."""
        return statistics.median(self.latencies_s)

    @property
    def send_bps(self) -> float:
        """Rate at which a core generates and sends data (bit/s)."""
        sending_s = 1 / self.copies_bps if self.byte_cost_s is None else self.byte_cost_s / 8
        return 1 / (1 / self.generated_bps + sending_s)

    @property
    def receive_bps(self) -> float:
        """Rate at which a core receives and checks data (bit/s)."""
        return 1 / (1 / self.checked_bps + (self.byte_cost_s or 0.0) / 8)

    def table(self, latencies: str = "") -> str:
        """Return the `[hosts]` table of a scenario; `latencies` names a file with the latencies."""
        if latencies:
            latency = f'{{ kind = "histogram", file = "{latencies}" }}'
        elif self.units > 2:  # latencies vary
            mean = _round(statistics.fmean(self.latencies_s), TIME)
            latency = f'{{ kind = "exponential", mean = "{mean}" }}'
        else:
            latency = f'{{ mean = "{_round(self.latency_s, TIME)}" }}'
        return f"""\
[hosts]
message_cost = "{_round(self.message_cost_s, TIME)}"
send_rate = "{_round(self.send_bps, RATE)}"
receive_rate = "{_round(self.receive_bps, RATE)}"
latency = {latency}
local_rate = "{_round(self.copies_bps, RATE)}\""""

    def to_dict(self) -> dict[str, Any]:
        """Return the results as a dictionary for JSON."""
        found = {name: getattr(self, name) for name in JSON_FIELDS}
        found["latency_s"] = _summary(self.latencies_s)
        found["timer_lateness_s"] = _summary(self.timer_lateness_s)
        return found


def _summary(values_s: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values_s)
    return {
        "p50": statistics.median(ordered),
        "p99": ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))],
        "max": ordered[-1],
    }


def _round(value: float, dimension: Dimension) -> str:
    return dimension.format(float(f"{value:.3g}"))


def calibrate(
    transport: str = "tcp", congestion: str = "", *, units: int = 2, rounds: int = ROUNDS
) -> Calibration:
    """Measure this machine. Raises MeasureError."""
    with ExitStack() as stack:
        enter: list[tuple[str, ...]] = [()] * units
        nodes, where = ["127.0.0.1"] * units, "loopback"
        over_network = transport != "shm"
        if over_network:  # units with shared memory meet in one namespace
            with suppress(MeasureError):
                spaces = stack.enter_context(Namespaces(units))
                enter = [host.enter for host in spaces.hosts]
                nodes, where = spaces.addresses, "namespaces"
        token = secrets.token_hex(16)
        ends = []
        for unit in range(units):
            options = (transport, nodes[unit], congestion, str(units), str(unit))
            child = Child((*enter[unit], *PROGRAM, *options), "this machine could not be measured")
            ends.append(stack.enter_context(child))
        first, *others = _echo(ends, token, rounds)
    cost_s, long_s = (
        (first[key] + statistics.fmean(other[key] for other in others)) / 2
        for key in ("cost_s", "long_cost_s")
    )
    cores = len(os.sched_getaffinity(0))
    data = _engine.measure_data_rates(min(cores, MOST_CORES), PACKING, FRAGMENT_BYTES)
    # The kernel of each side copies each byte at least once; wake-ups may hide this cost.
    copied_s = 1 / data.copied_bytes_per_s
    byte_cost_s = max(copied_s, (long_s - cost_s) / (LONG_BYTES - MESSAGE_BYTES))
    return Calibration(
        transport,
        where,
        cost_s,
        _latencies("rested", first, others, cost_s),
        statistics.median(_latencies("busy", first, others, cost_s)),
        8 * data.copied_bytes_per_s,
        timer_lateness(),
        8 * data.generated_bytes_per_s,
        8 * data.checked_bytes_per_s,
        byte_cost_s if over_network else None,
        units,
    )


def _latencies(
    part: str, first: Mapping[str, Any], others: Sequence[Mapping[str, Any]], cost_s: float
) -> tuple[float, ...]:
    """Return latencies of messages without the CPU time of both ends. With two units a latency is
    half of a round trip. More units each report theirs, since the first posts to one after another.
    """
    if len(others) == 1:
        return one_way(first[part]["times_s"], cost_s)
    return tuple(
        max(0.0, each - (place + 2) * cost_s)
        for place, other in enumerate(others)
        for each in other[part]["latencies_s"]
    )


def one_way(round_trips_s: Sequence[float], cost_s: float) -> tuple[float, ...]:
    """Return half of each round trip, without the CPU time of its two messages (s)."""
    return tuple(max(0.0, each / 2 - 2 * cost_s) for each in round_trips_s)


def timer_lateness() -> tuple[float, ...]:
    """Return the lateness of timers of this process (s), in ascending order."""
    found = []
    for _ in range(TIMERS):
        due_s = time.monotonic() + TIMER_S
        time.sleep(TIMER_S)
        found.append(time.monotonic() - due_s)
    return tuple(sorted(found))


def _echo(ends: Sequence[Child], token: str, rounds: int) -> list[dict[str, Any]]:
    """Connect the units, start their exchange of messages, and return their results."""
    for end in ends:
        end.write_line(token)
    addresses = [end.read_line() for end in ends]
    for unit, end in enumerate(ends):
        others = addresses[:1] if unit else addresses[1:]
        end.send({"others": others, "rounds": rounds, "rested": RESTED})
    return [end.answer() for end in ends]


def main(transport: str, node: str, congestion: str, units: str, unit: str) -> int:
    """Run one of the communicating units in this process."""
    token = bytes.fromhex(sys.stdin.readline())
    try:
        end = _engine.Echo.make(
            transport, node, congestion, token, int(units), int(unit), LONG_BYTES
        )
        print(end.address().hex(), flush=True)
        plan = json.loads(sys.stdin.readline())
        end.connect([bytes.fromhex(other) for other in plan["others"]], TIMEOUT_S)
        end.run(WARMUP_ROUNDS, MESSAGE_BYTES, 0.0, TIMEOUT_S)
        busy = end.run(plan["rounds"], MESSAGE_BYTES, 0.0, TIMEOUT_S)
        rested = end.run(plan["rested"], MESSAGE_BYTES, PAUSE_S, TIMEOUT_S)
        long = end.run(LONG_ROUNDS, LONG_BYTES, 0.0, TIMEOUT_S)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    costs = {
        "cost_s": busy.processor_s / busy.messages,
        "long_cost_s": long.processor_s / long.messages,
    }
    times = {
        name: {"times_s": found.times_s, "latencies_s": found.latencies_s}
        for name, found in (("busy", busy), ("rested", rested))
    }
    print(json.dumps(costs | times), flush=True)
    sys.stdin.read()  # connections stay open for the last rounds of others
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

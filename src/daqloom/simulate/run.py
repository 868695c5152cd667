"""Simulates a scenario and returns the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from daqloom.metrics import with_unit
from daqloom.result import Result, StoppedError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import TIME
from daqloom.simulate.errors import SimulationError
from daqloom.simulate.memory import check_memory, peak_bytes

if TYPE_CHECKING:
    from daqloom._engine import Links, PullReport, PullSystem, RunReport
    from daqloom.scenario.models import Scenario

CORE, TOR = 0, 1
"""Numbers of the switches of a rack."""
FEW_EVENTS = 20
ENOUGH_EVENTS = 100


def simulate(
    scenario: Scenario,
    *,
    seed: int | None = None,
    pcap: Mapping[str, Path] | None = None,
    trace: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulate `scenario` packet by packet for `run.duration` virtual seconds.

    `seed` replaces `run.seed`. `pcap` names links (`access.3.down`, `uplink.0.up`, `source.7.up`)
    and the pcapng files that record their frames; `trace` is a timeline for Perfetto. `progress` is
    called with the fraction done, 0 to 1, some ten times a second.

    The result carries `series`: `tor_occupancy` (`time_s`, `max_bytes`, one entry per
    bin of the time after the warm-up), `collection_latency` (`lowest_s`, `width_s`, `count`) and
    the `course` of some metrics (see `daqloom.simulate.course`).

    Same scenario, seed and version: the same metrics, bit for bit.

    Raises ScenarioError for what the engine refuses or the machine's memory does not hold,
    SimulationError for files that cannot be written; after Ctrl-C `StoppedError`, with the result
    of the time simulated until then. Files are complete in that case too.
    """
    from daqloom import _engine
    from daqloom.simulate import latency
    from daqloom.simulate.configure import pull_config
    from daqloom.simulate.course import course

    seed = scenario.run.seed if seed is None else seed
    started_s = time.perf_counter()
    duration_s = scenario.run.duration
    check_memory(scenario)
    try:
        config, names = pull_config(scenario, seed)
        rack = _engine.PullSystem(config)
        if pcap or trace:
            for file in [*(pcap or {}).values(), *([trace] if trace else [])]:
                with suppress(OSError):  # the engine says which file cannot be written, and why
                    file.parent.mkdir(parents=True, exist_ok=True)
            rack.record(
                {link: str(path) for link, path in (pcap or {}).items()},
                "" if trace is None else str(trace),
            )
        ran = run_engine(rack, duration_s, progress)
        if pcap or trace:
            rack.finish_recording()
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    except OSError as error:
        raise SimulationError(str(error)) from None
    check_books(rack)
    ran.check_warm(scenario.run.warmup)
    counted = rack.report()
    occupancy = rack.occupancy(TOR)
    series: dict[str, Any] = {
        "tor_occupancy": {
            "time_s": occupancy.time_s.tolist(),
            "max_bytes": occupancy.max_bytes.tolist(),
        },
        "collection_latency": latency.columns(rack.latency),
    }
    if not ran.interrupted:
        series["course"] = course(rack, counted, TOR)
    result = Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumed(),
        method="simulate",
        seed=seed,
        fingerprint=f"{counted.fingerprint:016x}",
        metrics=_metrics(rack, counted, names),
        interrupted=ran.interrupted,
        engine=cost(started_s, ran, counted),
        warnings=ran.warnings() + _warnings(counted, scenario.run.warmup),
        series=series,
    )
    return ran.whole(result)


@dataclass(frozen=True)
class Ran:
    """How far a simulation got."""

    cpu_s: float
    end_s: float
    """Virtual time simulated (s)."""
    duration_s: float
    """Virtual time requested (s)."""
    interrupted: bool

    def check_warm(self, warmup_s: float) -> None:
        """Raise StoppedError where Ctrl-C came before the end of the warm-up."""
        if self.interrupted and self.end_s <= warmup_s:
            raise StoppedError("interrupted before the end of the warm-up; there is no result")

    def warnings(self) -> list[str]:
        """Return a warning if the run ended early."""
        if not self.interrupted:
            return []
        end, duration = (with_unit(each, "s") for each in (self.end_s, self.duration_s))
        return [f"interrupted after {end} of {duration}: the numbers cover only that time"]

    def whole(self, result: Result) -> Result:
        """Return the result of a run that was not interrupted. Raises StoppedError with any
        other."""
        if self.interrupted:
            raise StoppedError(self.warnings()[0], result)
        return result


class Engine(Protocol):
    """A system in the engine."""

    @property
    def now_s(self) -> float:
        """Virtual time up to which was simulated (s)."""

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Simulate to the end of the run; `progress` takes the virtual time (s)."""

    def broken_conservation(self) -> str:
        """Return the conservation law that does not hold, in a sentence; empty if all do."""


def run_engine(engine: Engine, duration_s: float, progress: Callable[[float], None] | None) -> Ran:
    """Simulate to the end, or to Ctrl-C; `progress` is called with the share done."""
    began_s = time.thread_time()
    interrupted = False
    try:
        engine.run(None if progress is None else lambda now_s: progress(now_s / duration_s))
    except KeyboardInterrupt:
        interrupted = True
    end_s = engine.now_s if interrupted else duration_s
    return Ran(time.thread_time() - began_s, end_s, duration_s, interrupted)


def check_books(engine: Engine) -> None:
    """Raise SimulationError where a conservation law does not hold at the end of a run."""
    if broken := engine.broken_conservation():
        raise SimulationError(
            f"a conservation check of the simulation failed: {broken}; please report this scenario"
        )


def cost(started_s: float, ran: Ran, counted: RunReport) -> dict[str, Any]:
    """Return the cost of a run, as `Result.engine`; `started_s` by `time.perf_counter`."""
    return {
        "wall_s": time.perf_counter() - started_s,
        "cpu_s": ran.cpu_s,
        "virtual_s": ran.end_s,
        "sim_events": counted.sim_events,
        "packet_hops": counted.packet_hops,
        "packet_hops_per_cpu_s": counted.packet_hops / ran.cpu_s,
        "pending_events_peak": counted.pending_peak,
        "peak_rss_bytes": peak_bytes(),
    }


def _metrics(rack: PullSystem, counted: PullReport, names: Sequence[str]) -> dict[str, Any]:
    from daqloom.simulate import latency

    window_s = counted.window_s
    tcp, links, switches = counted.tcp, counted.links, counted.switches
    assert tcp is not None  # the transport of a rack
    metrics: dict[str, Any] = {
        "event_rate_hz": counted.events_built / window_s,
        "throughput_bps": 8 * counted.bytes_built / window_s,
        "events_built": counted.events_built,
        "events_in_flight": counted.events_in_flight,
        "events_waiting": counted.events_waiting,
    }
    if latencies := latency.summary(rack.latency):
        metrics["collection_latency_s"] = latencies
    metrics |= {
        "buffer_peak_bytes": {
            "tor": int(switches.peak_bytes[TOR]),
            "core": int(switches.peak_bytes[CORE]),
        },
        **_needed(counted),
        "packets_dropped": counted.drops,
        "drops_by_port": {
            name: drops for name, drops in zip(names, links.drops.tolist(), strict=True) if drops
        },
        **_drop_fraction(counted.drops, dict(zip(names, links.frames.tolist(), strict=True))),
        "retransmission_timeouts": (
            tcp.timeouts_whole_window + tcp.timeouts_tail + tcp.timeouts_retransmission
        ),
        "timeouts_by_cause": {
            "whole_window": tcp.timeouts_whole_window,
            "tail": tcp.timeouts_tail,
            "retransmission": tcp.timeouts_retransmission,
        },
        "retransmissions": {
            "fast": tcp.fast_retransmissions,
            "probe": tcp.probe_retransmissions,
            "timeout": tcp.timeout_retransmissions,
        },
        "packets_marked": counted.marks,
        "link_utilisation": _utilisation(names, links, window_s),
        "packet_hops": sum(links.frames.tolist()),
        "ack_hops": sum(links.ack_frames.tolist()),
    }
    return metrics


def _needed(counted: PullReport) -> dict[str, Any]:
    """Return the buffer with which a shared-memory switch drops nothing; none where it dropped."""
    needed = int(counted.switches.needed_bytes[TOR])
    return {} if counted.drops or not needed else {"buffer_needed_bytes": {"tor": needed}}


def _drop_fraction(drops: int, frames: Mapping[str, int]) -> dict[str, float]:
    """Return dropped / (dropped + forwarded), from the frames of each link; those of links that
    leave a host do not count.

    Frames queued or on the wire when counting begins or ends are an error of that number.
    """
    forwarded = sum(
        count
        for name, count in frames.items()
        if not (name.startswith(("source.", "access.")) and name.endswith(".up"))
    )
    arrived = drops + forwarded
    return {"drop_fraction": drops / arrived} if arrived else {}


def _utilisation(names: Sequence[str], links: Links, window_s: float) -> dict[str, float]:
    """Return the utilisation of each link, and of all links of a kind and direction
    (`access.down`)."""
    columns = zip(names, links.wire_bytes.tolist(), links.rate_bps.tolist(), strict=True)
    busy = {name: 8 * nbytes / (rate_bps * window_s) for name, nbytes, rate_bps in columns}
    kinds: dict[str, list[float]] = {}
    for name, share in busy.items():
        kind, _, direction = name.split(".")
        kinds.setdefault(f"{kind}.{direction}", []).append(share)
    return {name: sum(shares) / len(shares) for name, shares in kinds.items()} | busy


def _warnings(counted: PullReport, warmup_s: float) -> list[str]:
    warnings = []
    arrived, built = counted.events_arrived, counted.events_built
    if built == 0:
        warnings.append(
            "no event was built after the warm-up; lengthen run.duration or look at the rates"
        )
    elif built < FEW_EVENTS:
        window_s = counted.window_s
        enough_s = warmup_s + ENOUGH_EVENTS / built * window_s
        warnings.append(
            f"only {built} events were built in the {TIME.format(window_s)} counted, too few for "
            f"a rate or for percentiles of latency; "
            f'run.duration = "{TIME.format(float(f"{enough_s:.2g}"))}" counts '
            f"about {ENOUGH_EVENTS}"
        )
    if counted.events_waiting and built < 0.98 * arrived:
        warnings.append(
            f"the system is overloaded: {arrived} events arrived after the warm-up and {built} "
            f"were built; {counted.events_waiting} wait for a builder at the end"
        )
    return warnings

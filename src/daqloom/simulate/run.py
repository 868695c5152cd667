"""From a scenario through the engine to the result record."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.result import Result

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario

Counted = Mapping[str, Any]
"""What the engine reports."""


class SimulationError(RuntimeError):
    """A simulation that could not be run or written down. The message is one sentence."""


def simulate(
    scenario: Scenario,
    *,
    seed: int | None = None,
    pcap: Mapping[str, Path] | None = None,
    trace: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulates `scenario` packet by packet for `run.duration` virtual seconds.

    `seed` replaces `run.seed`. `pcap` names links (`access.3.down`, `uplink.0.up`, `source.7.up`)
    and the pcapng files that record their frames; `trace` is a timeline for Perfetto. `progress` is
    called with the fraction done, 0 to 1, some ten times a second.

    The result carries `series`: `tor_occupancy` (`time_s`, `max_bytes`, one entry per
    bin of the time after the warm-up), `collection_latency` (`lowest_s`, `width_s`, `count`) and
    the `course` of some metrics (see `daqloom.simulate.course`).

    Same scenario, seed and version: the same metrics, bit for bit.

    Raises `SimulationError` for what the engine refuses and for files that cannot be written.
    """
    from daqloom import _engine
    from daqloom.simulate.configure import rack_config
    from daqloom.simulate.course import course

    seed = scenario.run.seed if seed is None else seed
    started_s = time.perf_counter()
    duration_s = scenario.run.duration
    try:
        rack = _engine.Rack(rack_config(scenario, seed))
        if pcap or trace:
            for file in [*(pcap or {}).values(), *([trace] if trace else [])]:
                with suppress(OSError):  # the engine says which file cannot be written, and why
                    file.parent.mkdir(parents=True, exist_ok=True)
            rack.record(
                {link: str(path) for link, path in (pcap or {}).items()},
                "" if trace is None else str(trace),
            )
        cpu_s = rack.run(None if progress is None else lambda now_s: progress(now_s / duration_s))
        if pcap or trace:
            rack.finish_recording()
    except (ValueError, OSError) as error:
        raise SimulationError(str(error)) from None
    check_books(rack)
    counted = rack.report()
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        method="simulate",
        seed=seed,
        metrics=_metrics(counted),
        engine=cost(started_s, cpu_s, duration_s, counted),
        warnings=_warnings(counted),
        series={
            "tor_occupancy": counted["tor_occupancy"],
            "collection_latency": counted["latency_histogram"],
            "course": course(counted),
        },
    )


def check_books(engine: Any) -> None:
    """Raises SimulationError where a conservation law does not hold at the end of a run."""
    if broken := engine.broken_conservation():
        raise SimulationError(
            f"the simulation's books do not balance: {broken}; please report this scenario"
        )


def cost(started_s: float, cpu_s: float, duration_s: float, counted: Counted) -> dict[str, Any]:
    """What a run has cost, as `Result.engine`; `started_s` by `time.perf_counter`."""
    return {
        "wall_s": time.perf_counter() - started_s,
        "cpu_s": cpu_s,
        "virtual_s": duration_s,
        "sim_events": counted["sim_events"],
        "packet_hops": counted["packet_hops"],
        "packet_hops_per_cpu_s": counted["packet_hops"] / cpu_s,
        "pending_events_peak": counted["pending_peak"],
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _metrics(counted: Counted) -> dict[str, Any]:
    window_s = counted["window_s"]
    tcp, links = counted["tcp"], counted["links"]
    metrics: dict[str, Any] = {
        "event_rate_hz": counted["events_built"] / window_s,
        "throughput_bps": 8 * counted["bytes_built"] / window_s,
        "events_built": counted["events_built"],
        "events_incomplete": counted["events_incomplete"],
        "events_waiting": counted["events_waiting"],
    }
    if counted["latency_s"]:
        metrics["collection_latency_s"] = counted["latency_s"]
    metrics |= {
        "buffer_peak_bytes": {
            "tor": counted["tor_peak_bytes"],
            "core": counted["core_peak_bytes"],
        },
        "packets_dropped": counted["drops"],
        "drops_by_port": {name: link["drops"] for name, link in links.items() if link["drops"]},
        **_drop_fraction(counted["drops"], links),
        "retransmission_timeouts": (
            tcp["timeouts_whole_window"] + tcp["timeouts_tail"] + tcp["timeouts_retransmission"]
        ),
        "timeouts_by_cause": {
            "whole_window": tcp["timeouts_whole_window"],
            "tail": tcp["timeouts_tail"],
            "retransmission": tcp["timeouts_retransmission"],
        },
        "retransmissions": {
            "fast": tcp["fast_retransmissions"],
            "probe": tcp["probe_retransmissions"],
            "timeout": tcp["timeout_retransmissions"],
        },
        "packets_marked": counted["marks"],
        "link_utilisation": _utilisation(links, window_s),
        "packet_hops": sum(link["frames"] for link in links.values()),
        "ack_hops": sum(link["ack_frames"] for link in links.values()),
    }
    return metrics


def _drop_fraction(drops: int, links: Counted) -> dict[str, float]:
    """Dropped / (dropped + forwarded); links that leave a host forward nothing of a switch.

    Frames still queued or on the wire when counting begins or ends are off by their number.
    """
    forwarded = sum(
        link["frames"]
        for name, link in links.items()
        if not (name.startswith(("source.", "access.")) and name.endswith(".up"))
    )
    arrived = drops + forwarded
    return {"drop_fraction": drops / arrived} if arrived else {}


def _utilisation(links: Counted, window_s: float) -> dict[str, float]:
    """Of each link, and of all links of one kind and direction together (`access.down`)."""
    busy = {
        name: 8 * link["wire_bytes"] / (link["rate_bps"] * window_s) for name, link in links.items()
    }
    kinds: dict[str, list[float]] = {}
    for name, share in busy.items():
        kind, _, direction = name.split(".")
        kinds.setdefault(f"{kind}.{direction}", []).append(share)
    return {name: sum(shares) / len(shares) for name, shares in kinds.items()} | busy


def _warnings(counted: Counted) -> list[str]:
    warnings = []
    if counted["events_built"] == 0:
        warnings.append(
            "no event was built after the warm-up; lengthen run.duration or look at the rates"
        )
    arrived, built = counted["events_arrived"], counted["events_built"]
    if counted["events_waiting"] and built < 0.98 * arrived:
        warnings.append(
            f"the system does not keep up: {arrived} events arrived after the warm-up and {built} "
            f"were built; {counted['events_waiting']} wait for a builder at the end"
        )
    return warnings

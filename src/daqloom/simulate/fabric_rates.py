"""Rates of linear shift and DAQPIPE: of built events, and of written fragments."""

from collections.abc import Mapping
from typing import Any

from daqloom.scenario.quantities import TIME


def rates(
    window_s: float,
    *,
    events_delivered: int,
    bytes_built: int,
    events_written: float,
    bytes_written: int,
    readouts: int,
) -> dict[str, float]:
    """Return event and write rates from counters over `window_s` seconds.

    All builder units complete their events at the end of a round, so in a window of few rounds the
    event rate can be off by one round. Fragments are written continuously; their rate, divided by
    the fragments of an event, converges to the event rate within a few phases."""
    return {
        "event_rate_hz": events_delivered / window_s,
        "written_event_rate_hz": events_written / window_s,
        "throughput_bps": 8 * bytes_built / window_s,
        "written_throughput_bps": 8 * bytes_written / window_s,
        "node_throughput_bps": 8 * bytes_written / window_s / readouts,
    }


FEWEST_PHASES = 5
"""Number of phases in a window from which the rate of written fragments is meaningful."""
ENOUGH_ROUNDS = 10
"""Rounds in a window from which the event rate is meaningful: its error is one round, 10 %."""
APART = 1 / ENOUGH_ROUNDS
BUILT_AT_ONCE = "event_rate_hz counts complete events, many of which are built at once"
"""Part of the warning that advises the rate of written fragments."""


def too_short(
    metrics: Mapping[str, Any],
    *,
    window_s: float,
    rounds: float,
    round_s: float,
    phases: float,
    warmup_s: float,
) -> list[str]:
    """Return warnings about `rates` over few rounds or phases. In a round, each builder unit builds
    an event in each of its places; in a phase, each readout unit makes its consecutive writes."""
    built, written = (metrics[name] for name in ("event_rate_hz", "written_event_rate_hz"))
    # Events without the fragments of a lost unit have fewer written fragments.
    is_apart = not metrics.get("events_incomplete") and abs(built - written) > APART * written
    if rounds >= 1 and phases >= FEWEST_PHASES and not is_apart:
        return []
    warmup_s = max(warmup_s, round_s)
    window, warmup, needed = (
        TIME.format(float(f"{time_s:.3g}"))
        for time_s in (window_s, warmup_s, warmup_s + ENOUGH_ROUNDS * round_s)
    )
    advice = (
        "use written_event_rate_hz, which is already meaningful"
        if phases >= FEWEST_PHASES
        else "no rate of so short a run is the long-term rate"
    )
    return [
        f"the {window} counted have {rounds:.2g} rounds of event building, and {BUILT_AT_ONCE}: "
        f'{advice}; run.duration = "{needed}" with run.warmup = "{warmup}" measures '
        f"{ENOUGH_ROUNDS} rounds"
    ]

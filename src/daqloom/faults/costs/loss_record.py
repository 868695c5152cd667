"""Reports of a `Cost`: the JSON record, and notes on its assumptions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from daqloom.base.words import duration, join_names, plural
from daqloom.faults.costs.loss import CONFIDENCE, FEWEST_DAYS, MONTH_H, SAMPLES, Cost
from daqloom.faults.costs.network import HOST_LINK
from daqloom.faults.costs.throughput import Throughput

S_PER_H = 3600.0
BITS = 8


def record(cost: Cost) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    own, hours = cost.as_it_is, cost.ways[0].hours_lost
    return {
        "days": cost.month.days,
        "blocks": len(cost.overlap.time_s),
        "confidence": CONFIDENCE,
        "samples": SAMPLES,
        "month_hours": MONTH_H,
        "kinds": [asdict(kind) for kind in cost.kinds],
        "broken_at_once": [
            {"broken": broken, "time": asdict(share)} for broken, share in enumerate(cost.at_once)
        ],
        "throughput": {
            name: _throughput(link, cost.most) for name, link in cost.throughputs.items()
        },
        "lost": {
            "share": asdict(cost.lost),
            "hours": asdict(hours),
            "events": asdict(hours.times(S_PER_H * own.event_rate_hz)),
            "bytes": asdict(hours.times(S_PER_H * own.full_bps / BITS)),
            "sweep_s": cost.sweep_s,
            "sweeps_hours": cost.sweeps_h,
        },
        "ways": [asdict(way) for way in cost.ways],
        "repaired_within": [
            {"time_s": cap_s}
            | {name: value for name, value in asdict(way).items() if name != "name"}
            for cap_s, way in cost.faster_repairs
        ],
        "mended": asdict(cost.reliable_links),
        "worst_links": [
            {
                "link": link.total.link,
                "kind": link.kind,
                **asdict(link.total),
                "hours_lost": link.hours_lost,
            }
            for link in cost.worst
        ],
        "notes": list(notes(cost)),
    }


def _throughput(throughput: Throughput, most: int) -> dict[str, Any]:
    return {
        "simulated_bps": {f"{n}": list(throughput.found_bps[n]) for n in throughput.numbers},
        "event_rate_hz": throughput.event_rate_hz,
        "by_broken": [
            {"broken": broken, "bps": float(bps), "origin": throughput.origin(broken)}
            for broken, bps in enumerate(throughput.rates_bps(most))
        ],
    }


def notes(cost: Cost) -> Iterator[str]:
    """Yield sentences on the assumptions behind a cost."""
    own, last = cost.as_it_is, cost.as_it_is.numbers[-1]
    between = [str(k) for k in range(1, cost.most + 1) if own.origin(k) == "interpolated"]
    if between:
        yield f"throughput with {join_names(between)} broken is interpolated"
    if cost.most > last:
        beyond = sum(each.value for each in cost.at_once[last + 1 :])
        yield (
            f"throughput with more than {last} broken ({beyond:.2%} of the time, {cost.most} at "
            f"most) is taken as with {last}, which underestimates the loss; give more --failures"
        )
    levels = [kind for kind in cost.network.counts if kind != HOST_LINK]
    if len(levels) > 1:
        yield (
            "broken cables are drawn among all between switches, whatever their levels "
            f"({', '.join(sorted(levels))})"
        )
    days = len(cost.overlap.time_s)
    if days < FEWEST_DAYS:
        yield f"a log of {plural(days, 'day')} is too short for intervals ({FEWEST_DAYS} are not)"
    block_s = cost.overlap.block_s
    span_s = cost.overlap.span_s
    if long := int((span_s[:, 1] - span_s[:, 0] > block_s).sum()):
        yield (
            f"{plural(long, 'failure')} outlasted {duration(block_s)}, the time that is drawn "
            "again as a whole: intervals are too narrow"
        )

"""What a `Cost` comes to: as a record for programs, and in sentences what it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from daqloom.base.words import counted, duration, listed
from daqloom.faults.loss import CONFIDENCE, FEWEST_DAYS, MONTH_H, SAMPLES, Cost, Estimate, Way
from daqloom.faults.network import HOST_LINK
from daqloom.faults.throughput import Throughput

S_PER_H = 3600.0
BITS = 8


def record(cost: Cost) -> dict[str, Any]:
    """Return what is printed with --json."""
    lost, own = cost.lost, cost.as_it_is
    hours = cost.ways[0].hours
    return {
        "days": cost.month.days,
        "blocks": len(cost.overlap.time_s),
        "confidence": CONFIDENCE,
        "samples": SAMPLES,
        "month_hours": MONTH_H,
        "kinds": [
            {
                "kind": kind.name,
                "links": kind.links,
                "failures": kind.failures,
                "per_month": per_month(cost, kind.failures),
                "mean_s": kind.mean_s,
                "down_s": kind.down_s,
                "hours_lost": kind.hours,
            }
            for kind in cost.kinds
        ],
        "broken_at_once": [
            {"broken": broken, "time": _estimate(share)}
            for broken, share in enumerate(cost.at_once)
        ],
        "throughput": {
            name: _throughput(each, cost.most) for name, each in cost.throughputs.items()
        },
        "lost": {
            "share": _estimate(lost),
            "hours": _estimate(hours),
            "events": _estimate(hours.times(S_PER_H * own.event_rate_hz)),
            "bytes": _estimate(hours.times(S_PER_H * own.full_bps / BITS)),
            "sweep_s": cost.sweep_s,
            "sweeps_hours": cost.sweeps_h,
        },
        "ways": [_way(way) for way in cost.ways],
        "repaired_within": [
            {"time_s": cap_s, **_way(way, named=False)} for cap_s, way in cost.repaired
        ],
        "mended": _way(cost.mended),
        "worst_links": [
            {
                "link": each.total.link,
                "kind": each.kind,
                "failures": each.total.failures,
                "down_s": each.total.down_s,
                "causes": each.total.causes,
                "hours_lost": each.hours,
            }
            for each in cost.worst
        ],
        "notes": list(notes(cost)),
    }


def per_month(cost: Cost, number: int) -> float:
    """Return how many of so many failures of the log come in a month."""
    return number * MONTH_H / 24 / cost.month.days


def _way(way: Way, *, named: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = {"name": way.name} if named else {}
    return told | {
        "full_bps": way.full_bps,
        "mean_bps": _estimate(way.mean_bps),
        "hours_lost": _estimate(way.hours),
    }


def _throughput(throughput: Throughput, most: int) -> dict[str, Any]:
    return {
        "simulated_bps": {f"{n}": list(throughput.found_bps[n]) for n in throughput.numbers},
        "event_rate_hz": throughput.event_rate_hz,
        "by_broken": [
            {"broken": broken, "bps": float(bps), "origin": throughput.origin(broken)}
            for broken, bps in enumerate(throughput.of(most))
        ],
    }


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high}


def notes(cost: Cost) -> Iterator[str]:
    """Give what the result rests on, a sentence each."""
    own, last = cost.as_it_is, cost.as_it_is.numbers[-1]
    between = [str(k) for k in range(1, cost.most + 1) if own.origin(k) == "interpolated"]
    if between:
        yield f"throughput with {listed(between)} broken is interpolated"
    if cost.most > last:
        beyond = sum(each.value for each in cost.at_once[last + 1 :])
        yield (
            f"throughput with more than {last} broken ({beyond:.2%} of the time, {cost.most} at "
            f"most) is taken as with {last}, so that they cost at least what is told; more "
            "--failures say more"
        )
    levels = [kind for kind in cost.network.counts if kind != HOST_LINK]
    if len(levels) > 1:
        yield (
            "broken cables are drawn among all between switches, whatever they connect "
            f"({', '.join(sorted(levels))})"
        )
    days = len(cost.overlap.time_s)
    if days < FEWEST_DAYS:
        yield f"a log of {counted(days, 'day')} is too short for intervals ({FEWEST_DAYS} are not)"
    block_s = cost.overlap.block_s
    span_s = cost.overlap.span_s
    if long := int((span_s[:, 1] - span_s[:, 0] > block_s).sum()):
        yield (
            f"{counted(long, 'failure')} outlasted {duration(block_s)}, the time that is drawn "
            "again as a whole: intervals are too narrow"
        )

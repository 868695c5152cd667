"""Tables of `daqloom faults cost`."""

from __future__ import annotations

from collections.abc import Sequence

from daqloom.base import lazy
from daqloom.base.words import duration, plural
from daqloom.cli.console.columns import print_table
from daqloom.results.metrics import with_unit

with lazy.imports():
    from daqloom.faults.costs import loss, loss_record
    from daqloom.faults.costs import throughput as faults_throughput


MOST_ROWS = 12
"""Maximum rows of the table by number of cables down at the same time."""
BYTES = ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1.0, "B"))


def print_cost(cost: loss.Cost) -> None:
    """Print tables: kinds of links, cables down at the same time, lost throughput, remedies."""
    _print_kinds(cost)
    print()
    _print_at_once(cost)
    print()
    _print_loss(cost)
    print()
    _print_ways(cost)
    print()
    _print_worst(cost)


def _print_kinds(cost: loss.Cost) -> None:
    head = ("kind of link", "links", "failures", "a month", "mean duration", "down")
    rows = [
        (
            kind.kind,
            f"{kind.links:,}",
            f"{kind.failures:,}",
            f"{kind.per_month:.3g}",
            duration(kind.mean_s) if kind.failures else "",
            duration(kind.down_s),
        )
        for kind in cost.kinds
    ]
    print_table(head, rows)


def _print_at_once(cost: loss.Cost) -> None:
    own = cost.as_it_is
    last = own.numbers[-1]
    numbers = range(min(cost.most, last) + 1)
    shown: Sequence[int] = numbers
    if len(numbers) > MOST_ROWS:
        shown = [k for k in own.numbers if k <= cost.most]
    rows = [
        (
            f"{broken}",
            _per_cent(cost.at_once[broken]),
            *(_left(cost, each, broken) for each in cost.throughputs.values()),
            _origin(cost, broken),
        )
        for broken in shown
    ]
    if cost.most > last:
        beyond = sum(each.value for each in cost.at_once[last + 1 :])
        reached = (_left(cost, each, last) for each in cost.throughputs.values())
        rows.append((f"more than {last}", f"{100 * beyond:.3g} %", *reached, f"as with {last}"))
    head = ("cables down at once", "share of the time", *cost.throughputs, "from")
    print_table(head, rows, words=[len(head) - 1])


def _left(cost: loss.Cost, throughput: faults_throughput.Throughput, broken: int) -> str:
    """Return the throughput with broken cables, for the present system also its share of the full
    value."""
    bps = float(throughput.rates_bps(broken)[broken])
    share = bps / throughput.full_bps
    return _bps(bps) + (f", {100 * share:.3g} %" if throughput is cost.as_it_is else "")


def _origin(cost: loss.Cost, broken: int) -> str:
    draws = cost.as_it_is.found_bps.get(broken)
    if draws is None:
        return "interpolated"
    return f"mean of {plural(len(draws), 'draw')}" if broken else "simulated"


def _print_loss(cost: loss.Cost) -> None:
    own, hours = cost.as_it_is, cost.ways[0].hours_lost
    lost_bytes = hours.times(loss_record.S_PER_H * own.full_bps / loss_record.BITS)
    rows = [
        ("full throughput", _in_words(hours, 1.0, "h")),
        ("of the month", _per_cent(cost.lost)),
    ]
    if own.event_rate_hz:
        rows.append(
            ("events", _in_words(hours.times(loss_record.S_PER_H * own.event_rate_hz), 1.0, ""))
        )
    scale, unit = next(each for each in BYTES if abs(lost_bytes.value) >= each[0] or each[0] == 1)
    rows.append(("bytes", _in_words(lost_bytes, scale, unit)))
    rows += [(f"of it {kind.kind}", f"{kind.hours_lost:.3g} h") for kind in cost.kinds]
    sweeps_s = loss_record.S_PER_H * cost.sweeps_h
    rows.append((f"in addition, sweeps of {duration(cost.sweep_s)}", duration(sweeps_s)))
    print_table(("lost in a month of 30 days", ""), rows)


def _print_ways(cost: loss.Cost) -> None:
    names = {way.name: way for way in cost.ways}
    rows = [_way_row(name, way) for name, way in names.items()]
    for cap_s, way in cost.faster_repairs:
        is_median = cap_s == cost.month.median_s
        rows.append(
            _way_row(
                f"repaired within {duration(cap_s)}{' (the median)' if is_median else ''}", way
            )
        )
    rows.append(_way_row(cost.reliable_links.name, cost.reliable_links))
    print_table(("what would help", "with none down", "mean", "lost in a month"), rows)
    if any(way.hours_lost.value < 0 for way in names.values()):
        print("below 0: gained, measured by the full throughput as it is")


def _way_row(name: str, way: loss.Way) -> tuple[str, ...]:
    return name, _bps(way.full_bps), _bps(way.mean_bps.value), _in_words(way.hours_lost, 1.0, "h")


def _print_worst(cost: loss.Cost) -> None:
    head = ("link, most downtime first", "kind", "failures", "down", "lost in a month")
    rows = [
        (
            each.total.link,
            each.kind,
            f"{each.total.failures}",
            duration(each.total.down_s),
            f"{each.hours_lost:.3g} h",
        )
        for each in cost.worst
    ]
    print_table(head, rows)


def _bps(value: float) -> str:
    return with_unit(value, "bit/s")


def _per_cent(estimate: loss.Estimate) -> str:
    return _in_words(estimate, 0.01, "%")


def _in_words(estimate: loss.Estimate, scale: float, unit: str) -> str:
    """`7.8 h (4.6 to 12)`."""
    text = f"{estimate.value / scale:.3g} {unit}".rstrip()
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} ({estimate.low / scale:.3g} to {estimate.high / scale:.3g})"

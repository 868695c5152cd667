"""Tables of `daqloom faults log`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daqloom.base import lazy
from daqloom.base.words import duration, plural
from daqloom.cli.console.columns import print_table
from daqloom.faults.statistics.errors import DOWNED, RECOVERY, SYMBOL, LinkErrors

with lazy.imports():
    from daqloom.faults.statistics import by_link, summary


MOST_LINKS = 10
"""Maximum rows of the table of links that fail most."""
MOST_COUNTED = 40
"""Maximum rows of the table of counters."""


def print_failures(kinds: Mapping[str, summary.Variant], time_outs_s: Sequence[float]) -> None:
    """Print statistics, a column for each way to count failures, and the links that fail most."""
    kinds = summary.distinct(kinds)
    rows = [(name, *cells) for name, cells in _rows(kinds, time_outs_s).items()]
    print_table(("failures of links", *kinds), rows)
    last = list(kinds.values())[-1]
    worst = [
        (total.link, f"{total.failures}", duration(total.down_s), total.causes_in_words)
        for total in last.totals[:MOST_LINKS]
    ]
    if worst:
        print()
        print_table(("link", "failures", "down", "causes"), worst)


def print_counters(errors: Sequence[LinkErrors]) -> None:
    """Print a table of error counters: rows are links with errors, columns are counters."""
    known = {name for each in errors for name in each.counts}
    names = dict.fromkeys(name for name in (DOWNED, SYMBOL, RECOVERY) if name in known)
    names |= dict.fromkeys(name for each in errors for name in each.counts)
    if not errors:
        print("counters of links: no errors")
        return
    rows = [
        (each.link, *(f"{each.counts[n]:,}" if n in each.counts else "" for n in names))
        for each in errors[:MOST_COUNTED]
    ]
    print_table(("counters of links", *names), rows)
    if (more := len(errors) - MOST_COUNTED) > 0:
        print(f"and {plural(more, 'link')} more with fewer errors; --json has them all")


def _rows(
    kinds: Mapping[str, summary.Variant], time_outs_s: Sequence[float]
) -> dict[str, list[str]]:
    parts = list(kinds.values())
    rows = {
        "number": [f"{len(kind.failures):,}" for kind in parts],
        "a day": ["" if kind.per_day is None else f"{kind.per_day:.3g}" for kind in parts],
        "links that failed": [f"{len(kind.totals):,}" for kind in parts],
        "links that make half of them": [
            f"{by_link.most_of(kind.totals, summary.MOST_SHARE):,}" for kind in parts
        ],
        "downtime of all links": [duration(sum(t.down_s for t in kind.totals)) for kind in parts],
        "median duration": [_median(kind) for kind in parts],
    }
    for time_out_s in time_outs_s:
        shares = [kind.durations.outlasting(time_out_s) for kind in parts]
        rows[f"last longer than {duration(time_out_s)}"] = [
            f"{found[0]:.1%} ({found[1]:.1%} to {found[2]:.1%})" if found else ""
            for found in shares
        ]
    rows |= _between(parts)
    if any(kind.dispersion for kind in parts):
        rows["variance over mean of links"] = [
            f"{kind.dispersion.index:.3g} (p {_p(kind.dispersion.p_value)})"
            if kind.dispersion
            else ""
            for kind in parts
        ]
    causes = sorted({cause for kind in parts for cause in kind.causes})
    if causes != [by_link.NO_CAUSE]:
        rows |= {
            f"cause: {cause}": [f"{kind.causes[cause]:,}" for kind in parts] for cause in causes
        }
    return {name: cells for name, cells in rows.items() if any(cells)}


def _between(each: Sequence[summary.Variant]) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for place, name in enumerate(("exponential", "Weibull")):
        cells = []
        for kind in each:
            fits = kind.intervals.fits
            if not fits:
                cells.append("")
                continue
            shape = f", shape {fits[place].shape:.3g}" if place else ""
            cells.append(f"{duration(fits[place].scale_s)}{shape} (p {_p(fits[place].p_value)})")
        rows[f"between failures, {name}"] = cells
    return rows if any(map(any, rows.values())) else {}


def _median(kind: summary.Variant) -> str:
    median_s = kind.median_s
    return "" if median_s is None else duration(median_s)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "< 0.0001"

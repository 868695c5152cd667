"""Faults for a simulation, drawn from the failures of a log on a compressed time scale.

Times between failures are drawn from the distribution that fits the log: exponential, or Weibull if
failures come in bursts. Durations, and the relative failure rates of links, are from the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from daqloom.faults import FaultsError
from daqloom.faults.statistics.intervals import Fit
from daqloom.faults.statistics.summary import Variant
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.faults import MOST_INJECTED

BURSTS = 0.01
"""p-value of a constant rate below which the Weibull distribution is used."""
SHORTEST_S = 1e-6
"""Least duration after compression (s), shorter than packets take on the wire."""


@dataclass(frozen=True)
class DrawnFailure:
    """A failure of a simulation."""

    link: str
    at_s: float
    lasts_s: float


def law(variant: Variant) -> Fit:
    """Return the distribution of times between failures. Raises FaultsError if the log has too few
    failures."""
    times = variant.intervals
    if not times.fits:
        raise FaultsError(
            f"the log has {len(variant.failures)} failures of links of the network, too few for a "
            "distribution of the times between them; give a longer log"
        )
    exponential, weibull = times.fits
    return weibull if times.burst_p_value < BURSTS else exponential


def draw(variant: Variant, *, span_s: float, compress: float, seed: int = 1) -> list[DrawnFailure]:
    """Return failures within `span_s` of a simulation, by time; one second of it represents
    `compress` seconds of the log. A link that is down cannot fail again. Raises FaultsError if a
    scenario cannot have so many failures, or the log has too few."""
    ended = np.array([f.end_s - f.begin_s for f in variant.failures if f.end_s is not None])
    fit = law(variant)
    if not len(ended):
        raise FaultsError("no failure of the log has ended: nothing is known of their durations")
    random = np.random.default_rng(seed)
    totals = variant.totals
    weights = np.array([total.failures for total in totals], dtype=float)
    found: list[DrawnFailure] = []
    until_s: dict[str, float] = {}
    at_s = 0.0
    while True:
        at_s += fit.scale_s * random.weibull(fit.shape) / compress
        if at_s >= span_s:
            return found
        link = totals[random.choice(len(totals), p=weights / weights.sum())].link
        lasts_s = max(SHORTEST_S, float(random.choice(ended)) / compress)
        if at_s < until_s.get(link, 0.0):
            continue
        until_s[link] = at_s + lasts_s
        found.append(DrawnFailure(link, at_s, lasts_s))
        if len(found) > MOST_INJECTED:
            raise FaultsError(
                f"more than {MOST_INJECTED} failures in {span_s:g} s at {compress:g} times the "
                "log's pace; give a shorter --span or a smaller --compress"
            )


def injection(drawn: list[DrawnFailure], ends: Mapping[str, str]) -> dict[str, object]:
    """Return the keys of a scenario with these faults; `ends` names one end of each link."""
    keys: dict[str, object] = {}
    for number, each in enumerate(drawn):
        table = f"faults.injected.f{number}"
        keys |= {
            f"{table}.which": ends[each.link],
            f"{table}.at": TIME.format(each.at_s),
            f"{table}.lasts": TIME.format(each.lasts_s),
        }
    return keys

"""Nodes on a ring: the loss of linear shifting in step, out of step and paced by builder units. In
step n, node i writes to builder (i + n) mod N after a random delay. The model has no network: a
builder receives at the rate of one link, from one node or from several. A share is the fraction of
the full rate, at which every builder receives all the time. See
`docs/explanation/nodes-on-a-ring.md`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daqloom.analyse.fabric.push import Push
from daqloom.analyse.fabric.slowest import Chance, Times, delay_of
from daqloom.base import lazy
from daqloom.results.metrics import with_unit
from daqloom.scenario.schema.distribution import Distribution

with lazy.imports():
    from daqloom.analyse.fabric import ring_engine

TRANSFERS = 1_000_000
"""Simulated transfers for a steady-state result of the ring model, in about 0.1 s of CPU time."""
MOST_TRANSFERS = 3_000_000
"""Maximum simulated transfers for a result at the end of a run."""
DELAYS = (1e-3, 1e2)
"""Range of mean delays in which ways to shift are compared, in units of the transfer time."""
HALVINGS = 12
"""Logarithmic bisection steps of `DELAYS`, which locate a delay of equal shares within 0.3 %."""

EQUAL_SHARES = 0
"""Number of concurrent writers per builder that means no limit: all writers have equal rates."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A ring of nodes. The parameter `stretch` of its functions is a factor on the jitter."""

    work_s: Times
    """(nodes,): mean time of a node's transfer to a builder that serves no other."""
    deviation_s: float
    """Standard deviation of a node's transfer time."""
    jitter: Distribution
    latency: Distribution
    posts: int = 1
    """Latencies drawn before each transfer."""
    certain_s: float = 0.0
    """Constant part of the delay before each transfer (s)."""

    @property
    def transfer_s(self) -> float:
        """Mean time of a transfer over all nodes."""
        return float(self.work_s.mean())

    def in_step_share(self, stretch: float = 1.0) -> float:
        """Return the share of the full rate in step: all wait for the slowest node at a free
        barrier."""
        jitter = delay_of(self.jitter)
        jitter = replace(jitter, mean_s=stretch * jitter.mean_s, spread_s=stretch * jitter.spread_s)
        chance = Chance([jitter, delay_of(self.latency)], self.deviation_s)
        return self.transfer_s / chance.slowest_s(self.work_s)

    def out_of_step_share(self, stretch: float = 1.0) -> float:
        """Return the steady-state share out of step if a builder serves its writers at equal rates.
        This is the product form of a closed network of processor-sharing stations (Baskett et al.,
        J. ACM 22, 1975), in which only the means of transfers and delays matter.

        A node that arrives at a builder meets each other node with a probability: that node's
        fraction of time at builders, divided by N. The transfer takes longer by the sum of these
        probabilities. The fractions are computed for N nodes; the exact ones, for N - 1 nodes,
        differ by a relative 1/N.
        """
        waits_s = self._waits_s(stretch)
        takes_s = 2 * self.work_s
        for _ in range(100):
            here = takes_s / (takes_s + waits_s) / len(self.work_s)
            last_s, takes_s = takes_s, self.work_s * (1 + here.sum() - here)
            if np.allclose(takes_s, last_s, rtol=1e-9, atol=0):
                break
        return float((self.work_s / (takes_s + waits_s)).mean())

    def paced_share(self, writers: int, stretch: float = 1.0) -> float:
        """Return the steady-state share of the full rate if a builder admits `writers` nodes at a
        time."""
        nodes = len(self.work_s)
        steps = max(TRANSFERS // nodes, 100)
        length_s = steps * (self.transfer_s + self._waits_s(stretch))
        return float(np.mean(self._play(writers, length_s, stretch)[2:]))

    def share_at(self, time_s: float) -> float | None:
        """Return the share of the full rate in the last fifth of `time_s`, if nodes run out of step
        and a builder serves its writers at equal rates. None if the run is too long to simulate."""
        if len(self.work_s) * time_s > MOST_TRANSFERS * self.transfer_s:
            return None
        return self._play(EQUAL_SHARES, time_s)[-1]

    def wins_from_s(self, share_of: Callable[[float], float]) -> float | None:
        """Return the mean jitter (s) above which another way to shift, with share
        `share_of(stretch)`, is faster than in step. 0: for any jitter in `DELAYS`; None: for
        none."""
        unit = self.transfer_s / self.jitter.mean_s
        low, high = (delay * unit for delay in DELAYS)

        def wins(stretch: float) -> bool:
            return share_of(stretch) > self.in_step_share(stretch)

        if wins(low):
            return 0.0
        if not wins(high):
            return None
        for _ in range(HALVINGS):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if wins(middle) else (middle, high)
        return float((low * high) ** 0.5 * self.jitter.mean_s)

    def _waits_s(self, stretch: float) -> float:
        """Mean delay before a transfer."""
        return stretch * self.jitter.mean_s + self.posts * self.latency.mean_s + self.certain_s

    def _play(self, writers: int, time_s: float, stretch: float = 1.0) -> list[float]:
        """Return the simulated share in each fifth of the time."""
        delays = [(self.jitter, stretch)] + self.posts * [(self.latency, 1.0)]
        work = self.work_s, self.deviation_s
        return ring_engine.shares_by_fifth(*work, delays, self.certain_s, writers, time_s)


def ring_of(push: Push) -> Ring | None:
    """Return the ring of a scenario; None if it has fewer than two nodes or constant jitter."""
    jitter = push.scenario.building.jitter
    if push.nodes < 2 or not delay_of(jitter).deviation_s:
        return None
    return Ring(push.alone_s, push.deviation_s, jitter, push.scenario.hosts.latency)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ways to shift on a ring: shares of the full rate, and jitter from which each beats in
    step."""

    ring: Ring
    shares: dict[str, float]
    at_end: float | None
    """Share out of step at the end of the run; None if too long to simulate."""
    wins_from_s: dict[str, float | None]

    @classmethod
    def from_ring(cls, ring: Ring, run_s: float) -> "Comparison":
        """Compare the ways to shift; paced builders admit one writer at a time."""

        def pace(stretch: float = 1.0) -> float:
            return ring.paced_share(1, stretch)

        in_step_share, out_of_step = ring.in_step_share(), ring.out_of_step_share
        shares = {"in_step": in_step_share, "out_of_step": out_of_step(), "builder_paced": pace()}
        ways = {"out_of_step": out_of_step, "builder_paced": pace}
        wins_from_s = {way: ring.wins_from_s(share) for way, share in ways.items()}
        return cls(ring, shares, ring.share_at(run_s), wins_from_s)

    def metrics(self) -> dict[str, float]:
        """The shares as metrics."""
        at_end = {} if self.at_end is None else {"out_of_step_at_end": self.at_end}
        return self.shares | at_end

    def entry(self) -> dict[str, Any]:
        """The entry of `analysis`."""
        best = max(self.shares, key=lambda way: self.shares[way])
        known = {way: from_s for way, from_s in self.wins_from_s.items() if from_s is not None}
        crossings = {f"{way}_from_s": from_s for way, from_s in known.items()}
        return {"best_share": self.shares[best], "best": best} | crossings

    def sentence(self) -> str:
        """Return a sentence on the fastest way to shift, its gain, and where each beats in step."""
        reached = [f"{with_unit(share, '1')} {_WORDS[way]}" for way, share in self.shares.items()]
        if self.at_end is not None:
            reached[1] += f" ({with_unit(self.at_end, '1')} at the end of the run)"
        first, second, _ = sorted(self.shares, key=lambda way: -self.shares[way])
        gain = with_unit(self.shares[first] / self.shares[second] - 1, "1")
        crossings = [
            f"{_WORDS[way]} {_range_of_gain(from_s)}" for way, from_s in self.wins_from_s.items()
        ]
        return (
            f"analysis.ring: with these delays and without a network and the cost of messages, "
            f"{len(self.ring.work_s)} nodes on a ring reach of the full rate {', '.join(reached)}; "
            f"{_WORDS[first]} wins, {gain} ahead of {_WORDS[second]}; in step falls behind "
            f"{' and '.join(crossings)}"
        )


_WORDS = {"in_step": "in step", "out_of_step": "out of step", "builder_paced": "builder-paced"}


def _range_of_gain(delay_s: float | None) -> str:
    if delay_s is None:
        return "at no delay"
    return f"from a mean delay of {with_unit(delay_s, 's')} on" if delay_s else "at any delay"

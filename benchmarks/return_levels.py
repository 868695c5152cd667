"""Whether return levels of 60 s hold for an hour: 200 samples of each of several fluid queues.

Events come as a Poisson process, pass an uplink one after the other, and leave by one of several
outputs, drawn at random. The level of an hour that a long run shows is the truth. Each sample of
60 s is fitted as a study fits it (one run in 80 slices; three runs of 20 s), and in blocks of 25
ms.
"covered": share of the 95 % intervals that hold the truth; "numbers": share of samples that give an
interval. JSON on standard output.

    .venv/bin/python benchmarks/return_levels.py [--samples 200] [--hours 50] [SYSTEM …]
"""

import argparse
import json
import math
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from daqloom.study.conclusions.levels import fit_blocks
from daqloom.study.statistics.return_levels import block_maxima, fit_gev, return_level

PERIOD_S, SAMPLE_S, CHUNK_S, WARM_UP_S, BIN_S = 3600.0, 60.0, 600.0, 2.0, 0.005


@dataclass(frozen=True)
class Fluid:
    """Events and the outputs that they leave by; sizes in bytes, rates in Hz and bit/s."""

    rate_hz: float
    size_bytes: float
    outputs: int
    output_bps: float
    sizes: str = "even"
    held: float = math.inf
    """Credits: most bytes that one output holds, the others wait at their sources."""
    uplink_bps: float = 800e9

    @property
    def load(self) -> float:
        return self.rate_hz * self.size_bytes * 8 / (self.outputs * self.output_bps)

    def maxima(self, duration_s: float, seed: int) -> np.ndarray:
        """The highest occupancy in each bin of BIN_S after a warm-up, shape (bins,), in bytes."""
        random = np.random.default_rng(seed)
        end_s = duration_s + WARM_UP_S
        count = random.poisson(self.rate_hz * end_s)
        came_s = np.sort(random.random(count) * end_s)
        size = (
            np.full(count, self.size_bytes)
            * {
                "even": lambda: 1.0,
                "exponential": lambda: random.standard_exponential(count),
                "lognormal": lambda: np.exp(random.standard_normal(count) - 0.5),
            }[self.sizes]()
        )
        here_s = _departures_s(came_s, size * 8 / self.uplink_bps)
        output = random.integers(self.outputs, size=count)
        held = np.zeros(count)
        for each in range(self.outputs):
            ours = output == each
            empty_s = np.zeros(count)
            empty_s[ours] = _departures_s(here_s[ours], size[ours] * 8 / self.output_bps)
            backlog_s = np.maximum(np.maximum.accumulate(empty_s) - here_s, 0.0)
            held += np.minimum(backlog_s * self.output_bps / 8, self.held)
        place = ((here_s - WARM_UP_S) / BIN_S).astype(np.int64)
        bins = round(duration_s / BIN_S)
        counted = (place >= 0) & (here_s >= WARM_UP_S) & (place < bins)
        found = np.zeros(bins)
        np.maximum.at(found, place[counted], held[counted])
        return found


def _departures_s(came_s: np.ndarray, work_s: np.ndarray) -> np.ndarray:
    """When each of a queue is done, first come, first served (Lindley), without a loop."""
    done_s = np.cumsum(work_s)
    return done_s + np.maximum.accumulate(came_s - done_s + work_s)


MB = 1e6
SYSTEMS = {
    "5 MB × 3 kHz": Fluid(3000, 5 * MB, 32, 25e9),
    "2 MB × 8 kHz": Fluid(8000, 2 * MB, 32, 25e9),
    "load 0.5, exponential sizes": Fluid(5000, 5 * MB, 16, 25e9, "exponential"),
    "load 0.7": Fluid(7000, 5 * MB, 16, 25e9),
    "load 0.9": Fluid(9000, 5 * MB, 16, 25e9),
    "lognormal sizes": Fluid(3000, 5 * MB, 16, 25e9, "lognormal"),
    "one output, load 0.8": Fluid(4000, 5 * MB, 1, 200e9),
    "credits": Fluid(7000, 5 * MB, 16, 25e9, held=10 * MB),
}


def truth(fluid: Fluid, hours: float, seed: int = 1 << 20) -> float:
    """The level that the maximum of a second exceeds once in PERIOD_S, in a run of `hours`."""
    chunks = round(hours * 3600 / CHUNK_S)
    seconds = [
        fluid.maxima(CHUNK_S, seed + chunk).reshape(-1, round(1 / BIN_S)).max(axis=1)
        for chunk in range(chunks)
    ]
    ordered = np.sort(np.concatenate(seconds))
    exceeded = round(hours * 3600 / PERIOD_S)
    return float(ordered[-exceeded - 1 : -exceeded + 1 or None].mean())


def fits(maxima: np.ndarray) -> dict[str, tuple]:
    """Each way to fit a sample: the fit and the length of its blocks."""
    runs = maxima.reshape(3, -1)
    return {
        "1 run": fit_blocks(block_maxima(maxima, 80)[None], np.array([SAMPLE_S])),
        "3 seeds": fit_blocks(
            np.stack([block_maxima(run, 80) for run in runs]), np.full(3, SAMPLE_S / 3)
        ),
        "25 ms": (fit_gev(maxima.reshape(-1, 5).max(axis=1), replicas=0), 0.025),
    }


def sample(fluid: Fluid, seed: int) -> dict[str, tuple[float, float, float]]:
    """Low, value and high of the level of an hour, by way to fit."""
    found = {}
    for way, (fit, block_s) in fits(fluid.maxima(SAMPLE_S, seed)).items():
        level = return_level(fit, block_s, PERIOD_S)
        found[way] = (level.low, level.value, level.high)
    return found


def judge(levels: np.ndarray, true: float) -> dict[str, float]:
    """`levels`, shape (samples, 3), beside the truth."""
    low, value, high = levels[np.isfinite(levels).all(axis=1)].T
    return {
        "numbers": round(low.size / len(levels), 3),
        "covered": round(float(np.mean((low <= true) & (true <= high))), 3),
        "truth_above": round(float(np.mean(high < true)), 3),
        "median_error": round(float(np.median(value)) / true - 1, 4),
        "half_width": round(float(np.median((high - low) / 2 / value)), 3),
    }


def trial(name: str, samples: int, hours: float) -> dict:
    """All of one system."""
    fluid, started = SYSTEMS[name], time.monotonic()
    true = truth(fluid, hours)
    found = [sample(fluid, seed) for seed in range(samples)]
    report: dict = {"load": round(fluid.load, 2), "samples": samples, "level_of_an_hour": true}
    for way in found[0]:
        report[way] = judge(np.array([each[way] for each in found]), true)
    print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--hours", type=float, default=50.0, help="length of the long run")
    given = parser.parse_args()
    names = given.systems or list(SYSTEMS)
    with ProcessPoolExecutor() as pool:
        reports = pool.map(trial, names, [given.samples] * len(names), [given.hours] * len(names))
        json.dump(dict(zip(names, reports, strict=True)), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()

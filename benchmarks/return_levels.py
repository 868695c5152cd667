"""Whether levels fitted to short runs hold in a long one.

A rack of 16 builders at a tenth of its capacity runs for 200 s. Each of its 50 parts of 4 s alone
tells the level of 20 s and of 100 s; the whole run tells what is exceeded ten times and twice.
JSON on standard output. "covered": share of the parts whose 95 % interval holds that value.
"""

import json
import sys
import time

import numpy as np

import daqloom
from daqloom.study.levels import fit_blocks
from daqloom.study.return_levels import return_level

RACK = {
    "builders.units": 16,
    "network.links.source.rate": "40 Gb/s",
    "network.links.uplink.rate": "160 Gb/s",
    "event.rate": "4 kHz",
    "network.switch.tor.model": "infinite",
    "run.warmup": "1 s",
    "run.duration": "201 s",
}
PARTS, LONG_S = 50, 200.0
PART_S = LONG_S / PARTS


def main() -> None:
    started = time.process_time()
    result = daqloom.load("small-rack", RACK).simulate(seed=1)
    simulated_s = time.process_time() - started
    maxima = np.asarray(result.series["tor_occupancy"]["max_bytes"], dtype=float)
    assert maxima.size == 80 * PARTS
    fits = [
        fit_blocks(part[None], np.array([PART_S]), replicas=59)
        for part in maxima.reshape(PARTS, 80)
    ]
    report = {
        "simulated_s": LONG_S,
        "cpu_s": round(simulated_s, 1),
        "most_observed_bytes": float(maxima.max()),
        "levels": [judged(fits, maxima, period_s) for period_s in (20.0, 100.0)],
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def judged(fits: list, maxima: np.ndarray, period_s: float) -> dict:
    exceeded = int(LONG_S / period_s)
    # Between the last value that is exceeded so often and the next one below.
    true = float(np.sort(maxima)[-exceeded - 1 : -exceeded + 1 or None].mean())
    levels = [return_level(fit, block_s, period_s) for fit, block_s in fits]
    known = [level for level in levels if np.isfinite(level.low)]
    ratios = [level.value / true for level in levels]
    return {
        "period_s": period_s,
        "long_run_bytes": true,
        "covered": float(np.mean([each.low <= true <= each.high for each in known])),
        "above_interval": float(np.mean([each.high < true for each in known])),
        "below_interval": float(np.mean([each.low > true for each in known])),
        "without_interval": len(levels) - len(known),
        "level_over_long_run": {
            "median": float(np.median(ratios)),
            "p10": float(np.quantile(ratios, 0.1)),
            "p90": float(np.quantile(ratios, 0.9)),
        },
    }


if __name__ == "__main__":
    main()

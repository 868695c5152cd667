"""A level fitted to the start of a run, against the rest of it."""

import numpy as np
import pytest

from daqloom import methods
from daqloom.study.levels import fit_blocks
from daqloom.study.return_levels import block_maxima, return_level
from daqloom.topology.loaded import load

LONG_S, FITTED_S = 20.0, 2.0


def test_the_rest_of_a_run_peaks_where_its_start_says() -> None:
    rack = {
        "builders.units": 16,
        "network.links.source.rate": "40 Gb/s",
        "network.links.uplink.rate": "160 Gb/s",
        "event.rate": "4 kHz",
        "network.switch.tor.model": "infinite",
        "run.warmup": "1 s",
        "run.duration": f"{1 + LONG_S:g} s",
    }
    result = methods.simulate(load("small-rack", rack), seed=1)
    bins = np.asarray(result.series["tor_occupancy"]["max_bytes"], dtype=float)
    start, rest = np.split(bins, [round(bins.size * FITTED_S / LONG_S)])
    fit, block_s = fit_blocks(block_maxima(start, 80)[None], np.array([FITTED_S]))
    rest_s = LONG_S - FITTED_S
    # Peaks beyond the level of a period T come as a Poisson process, 1/T a second: the greatest of
    # the rest lies below that of T with exp(-rest/T), hence above the level of rest/3.69 with
    # 97.5 % and below that of 39.5 rest with 97.5 %.
    low = return_level(fit, block_s, rest_s / 3.69).low
    high = return_level(fit, block_s, rest_s * 39.5).high
    level = return_level(fit, block_s, rest_s).value
    assert low < rest.max() < high
    assert rest.max() == pytest.approx(level, rel=0.25)
    assert rest.max() > start.max()  # else nothing was extrapolated

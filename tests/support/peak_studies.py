"""A study whose peaks follow a formula, and slices of its runs from a known distribution."""

from typing import Any

import numpy as np
import xarray

from daqloom.study.statistics.gev import Gev, draw

PEAK, COURSE = "buffer_peak_bytes.tor", "course.buffer_peak_bytes.tor"
NEEDED = "buffer_needed_bytes.tor"
RATES = np.array([2e3, 6e3, 12e3, 18e3])
SIZES = np.array([1e6, 2e6, 4e6, 5e6])
TRUE = Gev(50e6, 4e6, 0.0)


def study(rates: Any = RATES, sizes: Any = SIZES, seeds: int = 3, **more: Any) -> xarray.Dataset:
    """Formula rate·size²/1e10 + size bytes; simulation 1.5 times that; capacity 20 kHz."""
    x, y = np.meshgrid(rates, sizes, indexing="ij")
    formula = np.repeat((x * y**2 / 1e10 + y)[..., None], seeds, axis=-1)
    dims = ("by", "event.rate", "event.size", "seed")
    values = np.stack([formula, 1.5 * formula])
    full = np.broadcast_to((x > 15e3)[None, ..., None] & (y > 4.5e6)[None, ..., None], values.shape)
    return xarray.Dataset(
        {
            PEAK: (dims, values, {"units": "B"}),
            "event_rate_bound_hz": (dims, np.full_like(values, 20e3), {"units": "Hz"}),
            "saturated": (dims, full.copy()),
            "equilibrium": (dims, np.full(values.shape, "", dtype="<U10")),
            "run_s": (dims, np.full_like(values, 8.0), {"units": "s"}),
        }
        | more,
        coords={
            "by": ["analyse", "simulate"],
            "event.rate": ("event.rate", rates, {"units": "Hz"}),
            "event.size": ("event.size", sizes, {"units": "B"}),
            "seed": range(1, seeds + 1),
        },
        attrs={
            "study": "s",
            "title": "A study",
            "scenario": "atlas-lab",
            "operating_point": {"event.rate": 12e3, "event.size": 5e6},
        },
    )


def with_course(dataset: xarray.Dataset, slices: np.ndarray) -> xarray.Dataset:
    """Add equal slices, shape (seeds, 80), to every simulated point."""
    course = np.full((*dataset[PEAK].shape, 80), np.nan)
    course[1] = slices
    dims = (*dataset[PEAK].dims, "slice")
    return dataset.assign({COURSE: (dims, course, {"units": "B"})})


def gumbel(seeds: int = 3, seed: int = 1) -> np.ndarray:
    return draw(TRUE, seeds * 80, np.random.default_rng(seed)).reshape(seeds, 80)

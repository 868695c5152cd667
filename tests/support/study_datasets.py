"""Datasets of studies with known numbers."""

import numpy as np
import xarray

PEAK = "buffer_peak_bytes.tor"
RATES = ("event.rate", [3e3, 6e3, 9e3, 12e3], "Hz")
SIZES = ("event.size", [1e6, 2.5e6, 5e6], "B")
MODELS = ("network.switch.tor.model", ["qfx5120-48y", "acx7100-48l"], "")
UPLINKS = ("network.links.uplink.count", [1, 2, 4], "")
POINT = {"event.rate": 12e3, "event.size": 5e6}


def study(*axes, seeds=3, methods=("analyse", "simulate"), bound_hz=None, **attrs):
    """Formula = 10 MB × (1 + sum of the steps' places); simulation 1.2 times that, seeds ±10 %."""
    shape = [len(values) for _, values, _ in axes]
    base = 10e6 * (1 + sum(np.indices(shape))) if axes else np.full((), 10e6)
    seeded = 1 + 0.1 * (np.arange(seeds) - (seeds - 1) / 2)
    tables = {
        "analyse": base[..., None] * np.ones(seeds),
        "simulate": 1.2 * base[..., None] * seeded,
    }
    dims = ("by", *(name for name, _, _ in axes), "seed")
    dataset = xarray.Dataset(
        {PEAK: (dims, np.stack([tables[m] for m in methods]), {"units": "B"})},
        coords={name: (name, values, {"units": unit}) for name, values, unit in axes}
        | {"by": list(methods), "seed": range(1, seeds + 1)},
        attrs={"study": "s", "title": "A study", "scenario": "atlas-lab"} | attrs,
    )
    if bound_hz is not None:
        bound = xarray.full_like(dataset[PEAK], np.nan)
        bound.loc[{"by": "analyse"}] = bound_hz
        dataset["event_rate_bound_hz"] = bound.assign_attrs(units="Hz")
        rate = dataset.coords.get("event.rate", POINT["event.rate"])
        full = xarray.full_like(dataset[PEAK], False, dtype=bool)
        dataset["saturated"] = full | (rate > bound_hz)
    return dataset


def searched(*axes, **options):
    dataset = study(*axes, bound_hz=20e3, **options)
    boundary = (dataset[PEAK] / 1e4).where(dataset["by"] == "simulate")
    about = {
        "units": "Hz",
        "key": "event.rate",
        "find": "largest",
        "where": "drop_fraction < 0.001",
        "bounds": [0.5e3, 60e3],
    }
    dataset["boundary"] = boundary.assign_attrs(about)
    status = np.where(np.isfinite(boundary), "found", "").astype("<U8")
    dataset["boundary_status"] = (boundary.dims, status)
    return dataset


LATENCY = "collection_latency_s.mean"


def with_latency(*axes, **attrs):
    """Return `study` with a latency of 1 ms for a peak of 10 MB."""
    dataset = study(*axes, **attrs)
    dataset[LATENCY] = (dataset[PEAK] * 1e-10).assign_attrs(units="s")
    return dataset

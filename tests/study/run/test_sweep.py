"""Sweeps from Python without a file, as datasets that say what they hold."""

from pathlib import Path

import numpy as np
import pytest

import daqloom
from daqloom.results.metrics import find_declaration
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.store.store import Store
from support.repository import ROOT

QUICK = {"run.duration": "60 ms", "run.warmup": "10 ms"}
AXES = {"event.rate": ["1 kHz", "2 kHz"], "event.size": ["200 kB", "400 kB"]}


def test_a_sweep_has_the_result_of_each_point() -> None:
    rack = daqloom.load("small-rack", QUICK)
    found = daqloom.sweep(rack, AXES, method=["analyse", "simulate"], seeds=[1, 7])
    assert dict(found.sizes) == {"by": 2, "event.rate": 2, "event.size": 2, "seed": 2}
    point = {"event.rate": 2e3, "event.size": 200e3}
    there = rack.with_overrides({"event.rate": "2 kHz", "event.size": "200 kB"})
    for seed in (1, 7):
        simulated = found.sel({"by": "simulate", "seed": seed, **point})
        for name in ("event_rate_hz", "buffer_peak_bytes.tor", "collection_latency_s.p99"):
            assert simulated[name] == there.simulate(seed=seed).metric(name)
    analysed = found.sel({"by": "analyse", "seed": 1, **point})
    assert analysed["buffer_peak_bytes.tor"] == there.analyse().metric("buffer_peak_bytes.tor")


def test_a_sweep_takes_the_name_or_the_path_of_a_scenario_and_a_range(tmp_path: Path) -> None:
    axes = {"event.rate": ["1 kHz", "2 kHz"]}
    loaded = daqloom.sweep(daqloom.load("small-rack"), axes, method="analyse")
    path = tmp_path / "mine.toml"
    path.write_text((ROOT / "scenarios" / "small-rack.toml").read_text())
    for named in ("small-rack", path):
        found = daqloom.sweep(named, axes, method="analyse")
        peaks = found["buffer_peak_bytes.tor"].values
        assert peaks.tolist() == loaded["buffer_peak_bytes.tor"].values.tolist()
    with pytest.raises(ScenarioError, match='did you mean "small-rack"'):
        daqloom.sweep("smal-rack", axes, method="analyse")
    axis = {"event.rate": {"from": "1 kHz", "to": "3 kHz", "step": "1 kHz"}}
    found = daqloom.sweep(daqloom.load("small-rack", QUICK), axis)
    assert list(found["event.rate"].values) == [1e3, 2e3, 3e3]
    assert list(found["by"].values) == ["simulate"]


@pytest.mark.process
def test_a_store_keeps_results_and_workers_share_it(tmp_path: Path) -> None:
    rack, shares = daqloom.load("small-rack", QUICK), []
    first = daqloom.sweep(rack, AXES, workers=2, store=tmp_path / "s", progress=shares.append)
    assert shares[-1] == 1.0
    with Store.open(tmp_path / "s", create=False) as store:
        kept = len(store)
    assert kept == 4
    again = daqloom.sweep(rack, AXES, store=tmp_path / "s")
    with Store.open(tmp_path / "s", create=False) as store:
        assert len(store) == kept
    assert again.identical(first)


def test_every_variable_has_a_long_name_and_a_unit() -> None:
    found = daqloom.sweep(daqloom.load("small-rack", QUICK), AXES, course=True)
    for name in [*found.data_vars, *found.coords]:
        assert found[name].attrs["long_name"]
        assert isinstance(found[name].attrs["units"], str)
        if metric := find_declaration(str(name)):
            assert found[name].attrs["units"] == metric.unit
    assert found["event.rate"].attrs == {"long_name": "event rate", "units": "Hz"}


@pytest.mark.parametrize(
    ("axes", "more", "sentence"),
    [
        ({"event.sise": ["1 MB"]}, {}, "event.sise"),
        ({"event.size": ["1 kHz"]}, {}, "is not in B"),
        ({"event.size": []}, {}, "event.size"),
        ({"run.seed": [1, 2]}, {}, "run.seed is set by"),
        (AXES, {"method": "guess"}, "methods"),
        (AXES, {"seeds": 0}, "repeat.seeds"),
    ],
)
def test_a_sweep_without_sense_is_refused_in_a_sentence(axes, more, sentence) -> None:
    with pytest.raises(StudyError, match=sentence):
        daqloom.sweep(daqloom.load("small-rack", QUICK), axes, **more)


def test_a_failed_point_is_missing_with_a_warning() -> None:
    rack = daqloom.load("small-rack", QUICK)
    sizes = ["200 kB", "1 B", "400 kB"]  # 1 B is less than a byte for each of four sources
    with pytest.warns(UserWarning, match=r"1 of 3 answers are missing; the first: simulate, .*1 B"):
        found = daqloom.sweep(rack, {"event.size": sizes})
    assert list(np.isnan(found["event_rate_hz"].values.ravel())) == [False, True, False]


def test_switches_have_the_cost_of_a_step_else_that_of_their_product() -> None:
    models = ["qfx5120-48y", "acx7100-48l", "infinite"]
    axes = {"network.switch.tor.model": models}
    found = daqloom.sweep("small-rack", axes, method="analyse")
    cost = "network.switch.tor.cost"
    assert np.array_equal(found[cost].values, [1.0, 2.5, np.nan], equal_nan=True)
    assert found[cost].dims == ("network.switch.tor.model",)
    given = daqloom.sweep("small-rack", {cost: [20, 35.5]}, method="analyse")
    assert list(given[cost].values) == [20, 35.5]

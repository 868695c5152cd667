"""Surfaces through a study's dataset: known numbers in, known coefficients out."""

import itertools
import math

import numpy as np
import pytest
import xarray

from daqloom.report.study import surface as study_surface
from daqloom.study import StudyError
from daqloom.study.conclusions.agreement import agreements
from daqloom.study.conclusions.fits import fits
from daqloom.study.file.points import means_by_method
from support.peak_studies import PEAK, RATES, SIZES, study


def test_each_method_has_its_surface_and_predicts_with_it() -> None:
    formula, simulation = fits(study())
    for fit, factor in ((formula, 1.0), (simulation, 1.5)):
        assert fit.surface.coefficients["x*y**2"].value == pytest.approx(factor / 1e10)
        assert fit.left_out == {"saturated": 1}
        assert fit.surface.r_squared == pytest.approx(1.0)
        inside = fit.predict({"event.rate": 12e3, "event.size": 5e6})
        assert inside.value == pytest.approx(factor * 35e6)  # 12e3 · 25e12 / 1e10 + 5e6
        assert inside.known == pytest.approx(inside.value)
        assert not inside.extrapolated
        beyond = fit.predict({"event.rate": 20e3, "event.size": 8e6})
        assert beyond.value == pytest.approx(factor * 136e6)
        assert beyond.extrapolated
        assert beyond.known is None


def test_only_points_below_a_limit_are_fitted() -> None:
    formula, simulation = fits(study(), terms="1 + y", below=4.5e6)
    # Formula, 1 MB: 1.2, 1.6, 2.2, 2.8 MB; 2 MB: 2.8, 4.4, 6.8, 9.2 MB; 4 MB: 7.2 MB and more.
    assert formula.z.tolist() == pytest.approx([1.2e6, 2.8e6, 1.6e6, 4.4e6, 2.2e6, 2.8e6])
    assert formula.left_out == {"saturated": 1, "above the limit": 9}
    assert simulation.left_out == {"saturated": 1, "above the limit": 10}


def test_points_that_were_left_out_are_predicted_as_well_as_they_can_be() -> None:
    dataset = study()
    noise = np.random.default_rng(5).normal(0, 1e5, dataset[PEAK].shape)
    noisy = dataset.assign({PEAK: (dataset[PEAK] + noise).assign_attrs(units="B")})
    fit = fits(noisy)[0]
    assert fit.surface.residual_sd == pytest.approx(1e5 / math.sqrt(3), rel=0.6)  # mean of 3 seeds
    assert fit.leave_one_out is not None
    assert fit.leave_one_out > fit.surface.residual_sd
    assert fit.leave_step_out(0) is not None
    # Without one of four sizes three are left, enough for y²; without one of three not.
    assert fit.leave_step_out(1) is not None
    assert fits(noisy.isel({"event.size": [0, 1, 3]}))[0].leave_step_out(1) is None


def test_a_search_is_fitted_where_it_found_a_boundary() -> None:
    dataset = study()
    boundary = dataset[PEAK].where(dataset["by"] == "simulate")
    status = np.where(boundary.notnull(), "found", "").astype("<U8")
    status[1, 0, 0, :] = "never"
    status[1, 0, 1, 0] = "above"  # the other seeds found theirs
    about = {
        "units": "B",
        "key": "network.switch.tor.buffer",
        "find": "smallest",
        "bounds": [0, 1e9],
    }
    searched = dataset.assign(
        boundary=boundary.assign_attrs(about), boundary_status=(boundary.dims, status)
    )
    formula, simulation = means_by_method(searched)
    assert (formula.variable, simulation.variable) == (PEAK, "boundary")
    assert simulation.left_out == {"saturated": 1, "never satisfied": 1}
    assert formula.left_out == {"saturated": 1}
    assert [fit.z.size for fit in fits(searched)] == [15, 14]
    [pair] = agreements(searched)
    assert pair.scale.k == pytest.approx(1.5)
    shared = searched.assign(boundary_shared=(boundary / 2).assign_attrs(units="B"))
    [pair] = agreements(shared, "boundary_shared")
    assert pair.scale.k == pytest.approx(0.75)
    assert len(pair.at) == 14


def test_further_axes_have_a_surface_for_each_step_and_one_alone_has_none() -> None:
    twice = study().assign({PEAK: (2 * study()[PEAK]).assign_attrs(units="B")})
    both = xarray.concat([study(), twice], "links.x").assign_coords({"links.x": ["one", "two"]})
    found = fits(both.transpose("by", "links.x", ...), PEAK)
    assert [(fit.method, fit.held["links.x"]) for fit in found] == list(
        itertools.product(["analyse", "simulate"], ["one", "two"])
    )
    with pytest.raises(StudyError, match="two numeric axes"):
        fits(study().isel({"event.rate": [0]}))
    assert study_surface.section(study().isel({"event.rate": [0]})) is None


def test_a_point_outside_of_the_interval_is_reported() -> None:
    dataset = study()
    point = {"event.rate": 12e3, "event.size": 5e6}
    formula, _ = fits(dataset, terms="plane", below=10e6)
    [answer, *others] = study_surface.sentences(dataset, [formula], point, 10e6)
    assert "by extrapolation; the formula itself gives 35 MB there, outside of" in answer
    assert "Only points of at most 10 MB are fitted." in others
    assert any(sentence.startswith("Extrapolation relies on the shape") for sentence in others)


def test_a_surface_that_rests_on_single_points_has_no_error_of_leaving_them_out() -> None:
    dataset = study()
    dataset[PEAK].loc[{"event.rate": RATES[1:], "event.size": SIZES[1:]}] = np.nan
    dataset[PEAK].loc[{"event.rate": 6e3, "event.size": 5e6}] = 20e6
    fit = fits(dataset, terms="1 + x + y + x*y")[0]  # one point tells x*y
    assert fit.leave_one_out is None
    assert study_surface.section(dataset.isel({"event.rate": [0, 1]})) is None
    _, [row, _] = study_surface.table(dataset, [fit, fit], [])
    assert row[5] == "–"

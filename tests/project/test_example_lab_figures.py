"""The picture of figs. 3 to 6: it is drawn from the tables of the page, which say what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.repository import ROOT

pytest.importorskip("daqloom._engine")

sys.path.insert(0, str(ROOT / "examples"))

import lab_figures


def test_the_scale_is_that_of_the_caption() -> None:
    """45 Hz of 120 kB stand for 10.8 kHz of 5 MB."""
    kilohertz = 45 * lab_figures.RATE / 1e3
    assert kilohertz == pytest.approx(10.8)
    assert lab_figures.megabytes(120) == pytest.approx(5)


def test_the_tables_have_all_points_and_the_laboratory_agrees_with_the_formula() -> None:
    rates = lab_figures.table("| event | bound of the links")
    assert [size for size, _ in rates] == [60, 90, 120, 150]
    assert all(measured < bound for _, (bound, _, measured, _) in rates)
    smallest = lab_figures.table("| event | simulated | measured at 15 Hz")
    assert [size for size, _ in smallest] == [60, 80, 100, 120, 150, 180]
    for size, (simulated, *measured) in smallest:
        assert len(measured) == 6
        of_formula = lab_figures.formula(size)
        for found in (simulated, *measured):
            assert lab_figures.megabytes(found) == pytest.approx(of_formula, rel=0.08)


@pytest.mark.process
def test_it_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "lab.png"
    subprocess.run(
        [sys.executable, str(ROOT / "examples/lab_figures.py"), str(picture)], check=True
    )
    assert picture.stat().st_size > 10_000

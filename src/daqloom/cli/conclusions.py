"""The commands that draw conclusions from a study: levels, fit, compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from daqloom.base import lazy
from daqloom.cli import options
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.store import read_study
from daqloom.cli.console.terminal import check_figures, fail, print_json, progress
from daqloom.cli.options import flag, option
from daqloom.study import StudyError

with lazy.imports():
    import xarray

    from daqloom.report import figure as report_figure
    from daqloom.report import matplotlib_renderer, style
    from daqloom.report.study import levels as study_levels
    from daqloom.report.study import methods, surface
    from daqloom.study.conclusions import agreement, as_json, fits
    from daqloom.study.conclusions import levels as conclusions_levels
    from daqloom.study.file import points
    from daqloom.study.store import store as store_store


FIGURES = (".png", ".pdf", ".svg")
DPI = 200

Json = Annotated[bool, flag("Print one JSON object, numbers in SI units, and no table.", "--json")]
Drawn = Annotated[list[Path] | None, options.figures(f"Also write a figure: {', '.join(FIGURES)}")]
At = Annotated[
    list[str] | None,
    option(
        "AXIS=VALUE",
        'Use only points at this step of an axis, such as event.rate="12 kHz"; may be repeated.',
        "--at",
    ),
]


def levels(
    file: options.Study,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
    period: Annotated[
        list[str] | None,
        option(
            "PERIOD",
            'Return period: hour, fill, day, week, year, or a time such as "8 h"; may '
            "be repeated. By default hour, fill, day.",
        ),
    ] = None,
    fill: Annotated[str, option("TIME", "Length of an LHC fill.")] = "10 h",
    at: At = None,
    figure: Drawn = None,
    json: Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Estimate the peak buffer occupancy in an hour, an LHC fill, a day (return levels).

    The peak of a run of seconds is an extreme value: longer runs have higher peaks. A generalised
    extreme value distribution is fitted to the maxima of short blocks of all runs of a point. It
    gives the buffer that overflows less than once in a period, with its confidence interval. For a
    shared-memory switch this is the total buffer, including cells and thresholds; for others an
    ideal buffer, in bytes. Points that are saturated, not stationary, or have dropped packets are
    left out and listed.

    \b
    Examples:
      daqloom study levels atlas-min-buffer --quick
      daqloom study levels atlas-min-buffer --at event.rate="12 kHz" --period fill --fill "8 h"
    """
    check_figures(figure or (), FIGURES)

    fill_s = conclusions_levels.seconds(fill)
    periods = [
        conclusions_levels.period(each, fill_s) for each in period or ("hour", "fill", "day")
    ]
    _, dataset, opened = read_study(file, store, quick=quick, course=True)
    chosen = _place(dataset, at)
    with progress("fitting", quiet=quiet) as show:
        results = conclusions_levels.levels(
            dataset, periods, at={axis: [step] for axis, step in chosen.items()}, progress=show
        )
    shown = study_levels.nearest(dataset, results, points.operating_point(dataset) | chosen)
    if json:
        _print_json(as_json.levels(dataset.attrs["study"], results), opened.damages)
    else:
        if shown is not None:
            print(*study_levels.sentences(dataset, results, shown), sep="\n")
        _print_table(*study_levels.table(dataset, results), len(points.axes_of(dataset)))
    if shown is None:
        fail("no point has a return level: all are left out", 1)
    if figure:
        _draw(figure, study_levels.figure(dataset, results, shown))


def fit(
    file: options.Study,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
    terms: Annotated[
        str,
        option(
            "TERMS",
            "A sum of products of x (event rate) and y (event size), such as "
            '"1 + x + x*y**2", or a name: rate-and-size, plane, bilinear, quadratic.',
        ),
    ] = "rate-and-size",
    below: Annotated[
        str | None,
        option("LIMIT", 'Fit only points up to this value, such as "32 MB", and extrapolate.'),
    ] = None,
    at: Annotated[
        list[str] | None,
        option(
            "AXIS=VALUE",
            'Point at which the surface is evaluated, such as event.rate="12 kHz"; once for '
            "each axis. By default the scenario's own event rate and size.",
        ),
    ] = None,
    show: options.Show = None,
    figure: Drawn = None,
    json: Json = False,
) -> None:
    """Fit a surface over event rate and size, and evaluate it anywhere.

    One least-squares polynomial for each method, by default of order 1 in the rate and 2 in the
    size. Prints R², the residual scatter, cross-validation errors, and the value at the operating
    point with its prediction interval. Values outside the range of the points are marked as
    extrapolated. Saturated points, and searches that found no boundary, are left out and counted.

    \b
    Examples:
      daqloom study fit atlas-min-buffer --quick
      daqloom study fit atlas-min-buffer --below "32 MB" --figure surface.png
      daqloom study fit atlas-min-buffer --at event.rate="15 kHz" --at event.size="6 MB" --json
    """
    check_figures(figure or (), FIGURES)

    _, dataset, opened = read_study(file, store, quick=quick)
    limit = None if below is None else points.limit(dataset, show, below, "--below")
    surfaces = fits.fits(dataset, show, terms=terms, below=limit)
    chosen = _place(dataset, at)
    place = {
        a: v for a, v in (points.operating_point(dataset) | chosen).items() if a in surfaces[0].axes
    }
    places = [place] if set(surfaces[0].axes) <= place.keys() else []
    if json:
        _print_json(as_json.fits(dataset.attrs["study"], surfaces, places), opened.damages)
    else:
        print(*surface.sentences(dataset, surfaces, place, limit), sep="\n")
        for each in surfaces:
            named = f"{surface.label(dataset, each)} = "
            print(named + surface.polynomial(dataset, each))
        print(f"({surface.variables(dataset, surfaces[0])})")
        _print_table(*surface.table(dataset, surfaces, places))
    if figure:
        _draw(figure, surface.figure(dataset, surfaces, place))


def compare(
    file: options.Study,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
    tolerance: Annotated[
        float, flag("Relative deviation from the factor within which methods agree.", min=0)
    ] = 0.1,
    at: At = None,
    below: Annotated[
        str | None,
        option("LIMIT", 'Use only points at which no method exceeds this value, such as "32 MB".'),
    ] = None,
    show: options.Show = None,
    figure: Drawn = None,
    json: Json = False,
) -> None:
    """Fit one factor between two methods, and show where they disagree.

    For each point, prints the ratio of the methods, its deviation from the factor, the load
    (offered rate divided by link capacity) and a verdict. Saturated points are left out. `daqloom
    compare` runs both methods on the same events of one point, and explains why they disagree
    there.

    \b
    Examples:
      daqloom study compare atlas-min-buffer --quick
      daqloom study compare atlas-min-buffer --tolerance 0.2 --figure ratio.png
      daqloom study compare atlas-min-shared-buffer --at variant="evenly spaced events" \\
        --show boundary_shared --below "27 MB"
    """
    check_figures(figure or (), FIGURES)

    _, dataset, opened = read_study(file, store, quick=quick)
    dataset = points.at_steps(dataset, _place(dataset, at))
    limit = math.inf if below is None else points.limit(dataset, show, below, "--below")
    found = agreement.agreements(dataset, show, tolerance=tolerance, below=limit)
    if json:
        _print_json(as_json.agreements(dataset.attrs["study"], found), opened.damages)
    else:
        for each in found:
            print(*methods.sentences(each), sep="\n")
            _print_table(*methods.table(dataset, each, show), len(points.axes_of(dataset)))
    if figure:
        _draw(figure, methods.figure(dataset, found[0]))


def _place(dataset: xarray.Dataset, options_: list[str] | None) -> dict[str, Any]:
    """Parse --at options into values by axis, quantities in SI units. Raises StudyError."""
    axes, place = points.axes_of(dataset), {}
    for given in options_ or ():
        axis, equals, text = given.partition("=")
        if not equals or axis not in axes:
            raise StudyError(
                f"--at {given}: expected AXIS=VALUE; the axes of this study are {', '.join(axes)}"
            )
        dimension = points.dimension_of(dataset[axis])
        try:
            value: Any = dimension.parse(text) if dimension else text
            place[axis] = float(value) if points.is_numeric(dataset, axis) else value
        except ValueError as error:
            why = str(error) if dimension else "is no number"
            raise StudyError(f'--at {axis}: "{text}" {why}') from None
    return place


def _print_json(found: dict[str, Any], damages: list[store_store.Damage]) -> None:
    print_json(found | {"store_damage": as_json.damages(damages)})


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> None:
    """Print a table whose first `names` columns identify a row. Notes become footnotes, because
    many rows share them. A last column of verdicts may wrap."""
    footnotes: dict[str, int] = {}
    if head[-1] == "notes":
        rows = [[*row[:-1], _footnote_numbers(row[-1], footnotes)] for row in rows]
    print()
    print_table(head, rows, names=names, words=[len(head) - 1] * (head[-1] == "verdict"))
    if footnotes:
        print("\n" + "\n".join(f"{number}  {note}" for note, number in footnotes.items()))


def _footnote_numbers(notes: str, footnotes: dict[str, int]) -> str:
    """Return the footnote numbers of the notes in a cell; new notes are added to `footnotes`."""
    if notes == style.NOTHING:
        return notes
    numbers = {footnotes.setdefault(note, len(footnotes) + 1) for note in notes.split("; ")}
    return ", ".join(map(str, sorted(numbers)))


def _draw(paths: Sequence[Path], figure: report_figure.Figure) -> None:
    for path in paths:
        matplotlib_renderer.save(figure, path, DPI)

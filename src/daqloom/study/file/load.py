"""Study files by name or path: reading, the quick form, axes, and checks between tables."""

import math
from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from daqloom.base import lazy
from daqloom.base.words import did_you_mean
from daqloom.deployment.scenarios import load
from daqloom.scenario import ScenarioError
from daqloom.scenario.package_files import package_files
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.toml import read_toml
from daqloom.study import StudyError
from daqloom.study.file import kinds
from daqloom.study.file.axis import Axis, cartesian, flatten, parallel_axis, require_key, variants
from daqloom.study.file.bisection import tolerances
from daqloom.study.file.common_keys import CommonKeys, load_common
from daqloom.study.file.condition import require_metric
from daqloom.study.file.study import Study
from daqloom.study.file.tables import Equilibrium, Search, StudyFile, sentences_of

with lazy.imports():
    from daqloom.measure import check

LARGEST_STUDY_BYTES = 1 << 20
MOST_SEEDS = 10_000
SEEDS_END = 1 << 53
"""Upper limit of seeds, so that they are exact as coordinates of a dataset (double precision)."""
MOST_ANSWERS = 10_000_000


def shipped_studies() -> dict[str, Path]:
    """Return the studies that come with daqloom, by name."""
    return package_files("studies")


def find_study(study: str | PathLike[str]) -> Path:
    """Return the file of a study by its name or path. Raises StudyError for an unknown name."""
    path = Path(study)
    if "/" in str(study) or path.suffix == ".toml" or path.exists():
        return path
    known = shipped_studies()
    if str(study) in known:
        return known[str(study)]
    hint = did_you_mean(str(study), known, "known are " + ", ".join(known))
    raise StudyError(
        f'there is no study "{str(study)[:80]}"; {hint} (a file is a path that ends in .toml)'
    )


def load_study(study: str | PathLike[str], *, quick: bool = False) -> Study:
    """Read a study by name or path; `quick` selects the quick form. Raises StudyError."""
    path = find_study(study)
    document = read_document(path)
    return study_of_document(path, quick_form(document) if quick else document)


def read_document(path: Path) -> dict[str, Any]:
    """Read the tables of a study file, without checks of their keys. Raises StudyError."""
    try:
        return read_toml(path, LARGEST_STUDY_BYTES)
    except ScenarioError as error:
        raise StudyError(*error.mistakes) from None


def study_of_document(path: Path, document: Mapping[str, Any]) -> Study:
    """Return the study of the tables of the file `path`. Raises StudyError."""
    try:
        return _study(path, StudyFile.model_validate(document))
    except ValidationError as error:
        mistakes = *sentences_of(error), *_mistakes_of_axes(document, error)
        raise StudyError(*(f"{path}: {each}" for each in mistakes)) from None
    except ScenarioError as error:
        raise StudyError(*(f"{path}: {each}" for each in error.mistakes)) from None
    except RecursionError:
        raise StudyError(f"{path} is nested too deeply; expected tables of keys") from None
    except ValueError as error:
        raise StudyError(f"{path} {error}") from None


def _mistakes_of_axes(document: Mapping[str, Any], error: ValidationError) -> tuple[str, ...]:
    """Return the mistakes in the axes of a document whose other tables have the mistakes of
    `error`."""
    wrong = {each["loc"][0] for each in error.errors() if each["loc"]}
    kept = {key: value for key, value in document.items() if key in _AXES and key not in wrong}
    try:
        _axes(StudyFile.model_validate({"scenario": "", **kept}))
    except StudyError as found:
        return found.mistakes
    return ()


_AXES = ("grid", "zip", "variants")
"""Tables of the axes."""


def quick_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of the quick form of a study file."""
    quick = document.get("quick", {})
    return merge(document, quick) if isinstance(quick, dict) else dict(document)


def merge(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a study file with changes: tables are merged by key, variants and other
    values replaced."""
    merged = dict(document)
    for name, value in changes.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict) and name != "variants":
            merged[name] = flatten(old) | flatten(value)
        else:
            merged[name] = value
    return merged


def _study(path: Path, file: StudyFile) -> Study:
    named = file.scenario
    if named.endswith(".toml") or "/" in named:
        named = str(path.parent / named)
    try:
        axes = _axes(file)
    except StudyError as error:
        raise StudyError(*error.mistakes, *_mistakes_of_set(named, flatten(file.set))) from None
    common = load_common(named, flatten(file.set), axes)
    return _create_study(common, file, path.stem)


def _mistakes_of_set(scenario: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the mistakes in the scenario with [set], ignoring the axes."""
    try:
        load(scenario, values)
    except ScenarioError as error:
        return error.mistakes
    return ()


def study_of(base: Scenario, file: StudyFile, name: str) -> Study:
    """Return the study of `file` with `base` instead of the file's scenario and [set]. Raises
    StudyError, ScenarioError."""
    return _create_study(CommonKeys(base, {}, _axes(file)), file, name)


def _axes(file: StudyFile) -> tuple[Axis, ...]:
    """Return the axes of a study. Raises StudyError with the mistakes of all axes."""
    makers = [partial(cartesian, key, values) for key, values in flatten(file.grid).items()]
    makers += [partial(parallel_axis, flatten(table)) for table in file.zip if table]
    makers += [partial(variants, file.variants)] if file.variants else []
    axes: list[Axis] = []
    mistakes: list[str] = []
    for make in makers:
        try:
            axes.append(make())
        except StudyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise StudyError(*mistakes)
    return tuple(axes)


def _create_study(common: CommonKeys, file: StudyFile, name: str) -> Study:
    study = Study(
        name=name,
        title=file.title or name,
        description=file.description,
        figure=file.figure,
        base=common.base,
        methods=file.methods,
        axes=tuple(common.axes),
        search=file.search,
        equilibrium=file.equilibrium,
        seeds=_seeds(file.repeat.seeds),
        show=file.report.show,
        bars=file.report.bars,
        seed_sets=file.repeat.sets,
        common=common,
        notes=tuple(common.notes()),
    )
    _check(study)
    return study


def _seeds(seeds: int | tuple[int, ...]) -> tuple[int, ...]:
    number = seeds if isinstance(seeds, int) else len(seeds)
    if 1 <= number <= MOST_SEEDS:
        chosen = tuple(range(1, seeds + 1)) if isinstance(seeds, int) else seeds
        if len(set(chosen)) == number and min(chosen) >= 0 and max(chosen) < SEEDS_END:
            return chosen
    raise StudyError(
        f"repeat.seeds = {str(seeds)[:80]}: expected a number of seeds, 1 to {MOST_SEEDS}, or a "
        f"list of at most {MOST_SEEDS} different numbers from 0 to {SEEDS_END - 1}"
    )


def _check(study: Study) -> None:
    answers = study.points * len(study.seeds) * len(study.methods)
    if answers > MOST_ANSWERS:
        raise StudyError(
            f"{' × '.join(str(n) for n in study.shape)} points, {len(study.seeds)} seeds: "
            f"at most {MOST_ANSWERS} answers are allowed"
        )
    if "measure" in study.methods:
        check.check_measurable(study.base)
    keys = study.keys
    if study.search:
        _check_search(study, study.search)
    if study.equilibrium:
        _check_equilibrium(study, study.equilibrium)
    mistakes: list[str] = []
    for name in study.show:
        try:
            require_metric(name, study.methods, study.parts)
        except StudyError as error:
            mistakes += error.mistakes
    if mistakes:
        raise StudyError(*mistakes)
    for key in study.seed_sets:
        require_key(key, "repeat.sets: ")
    for key in {"run.seed", *study.seed_sets} & set(keys):
        raise StudyError(f"{key} is set by [repeat], not by an axis")
    for key in keys:
        if keys.count(key) > 1:
            raise StudyError(f"{key} is set twice")
    for index in _checked_points(study):  # the others are checked when they are computed
        study.scenario(index)


def _checked_points(study: Study) -> set[tuple[int, ...]]:
    """Return the points that are validated on load: first, last, and one for each variant."""
    first = tuple(0 for _ in study.shape)
    points = {first, tuple(n - 1 for n in study.shape)}
    for place, axis in enumerate(study.axes):
        if axis.labels:
            points |= {(*first[:place], step, *first[place + 1 :]) for step in range(len(axis))}
    return points


def _check_search(study: Study, search: Search) -> None:
    require_key(search.key, "search.key: ")
    _ = study.condition  # parsing now reports mistakes before any run
    low, high = search.range
    if not -math.inf < low < high < math.inf:
        raise StudyError(f"search.bounds = {list(search.bounds)}: expected a low and a high value")
    if not 0 < search.precision < math.inf:
        raise StudyError(f"search.tolerance = {search.tolerance!r} must be a number above 0")
    if search.spacing == "log" and low <= 0:
        raise StudyError("search.bounds: log spacing requires bounds above 0")
    if not math.isfinite(tolerances(low, high, search.precision, search.spacing)):
        raise StudyError(f"search.tolerance = {search.tolerance!r} is too small for the bounds")


def _check_equilibrium(study: Study, equilibrium: Equilibrium) -> None:
    courses = kinds.kind_of(study.base).courses
    if not courses:
        raise StudyError(
            f"equilibrium: a fabric such as {study.base.name} records no course over time; leave "
            "[equilibrium] out, and set run.warmup to when event building is stationary"
        )
    if equilibrium.metric not in courses:
        raise StudyError(
            f'equilibrium.metric: "{equilibrium.metric[:80]}" is not recorded over time; '
            f"use one of {', '.join(courses)}"
        )
    if equilibrium.longest_s < study.base.run.duration:
        raise StudyError(
            f'equilibrium.longest = "{equilibrium.longest}" is shorter than '
            f'run.duration = "{study.base.run.duration:g} s"; expected as long or longer'
        )

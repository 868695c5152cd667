"""Studies for a browser: list, progress in a store, figures, table and provenance."""

from __future__ import annotations

import base64
from itertools import islice
from pathlib import Path
from typing import Any

from daqloom.base import lazy
from daqloom.scenario import files
from daqloom.scenario.errors import ScenarioError
from daqloom.study import StudyError
from daqloom.tasks.program import Answer, report

with lazy.imports():
    from daqloom.report import matplotlib_renderer
    from daqloom.report.study import provenance, table
    from daqloom.report.study import report as study_report
    from daqloom.study.file import load as study_load
    from daqloom.study.run import dataset as run_dataset
    from daqloom.study.run import plan as run_plan
    from daqloom.study.run import runner

MOST_FILES = 200
MOST_ROWS = 400


def list_studies() -> Answer:
    """Return names and titles of the shipped studies, and of those in the working folder."""
    names = [*study_load.shipped_studies(), *map(str, islice(_files(), MOST_FILES))]
    found = []
    for name in names:
        try:
            study = study_load.load_study(name)
        except StudyError:  # another kind of file
            continue
        found.append({"name": name, "title": study.title, "scenario": study.base.name})
    return {"studies": found}


def _files() -> list[Path]:
    folder = Path.cwd()
    if not files.is_allowed(folder):
        return []
    return [path.relative_to(folder) for path in sorted(folder.glob("*.toml"))]


def study(name: str, store: str, quick: bool) -> Answer:
    """Return progress, figures, table and provenance of a study, as far as the store has results.
    Raises ScenarioError, StudyError."""
    read = study_load.load_study(name, quick=quick)
    place = Path(store)
    if not files.is_allowed(place):
        raise ScenarioError(f"{store} is outside the folder of the server; give a path below it")
    answer: dict[str, Any] = {"title": read.title, "description": read.description}
    if not place.exists():
        return answer | {"tasks": run_plan.plan(read, None).tasks, "done": 0}
    with provenance.WitnessedStore.open(place, create=False) as opened:
        found = run_plan.plan(read, opened)
        answer |= {"tasks": found.tasks, "done": found.tasks_done, "left": found.cells_left}
        if not found.tasks_done:
            return answer
        dataset = run_dataset.to_dataset(read, runner.replay(read, opened), course=True)
    sections = [*study_report.findings(dataset, None, report), *study_report.pictures(dataset)]
    figures = [
        {
            "heading": each.heading,
            "sentences": list(each.sentences),
            "described": each.described or each.heading,
            "svg": base64.b64encode(matplotlib_renderer.svg(each.figure)).decode(),
        }
        for each in sections
        if each.figure
    ]
    return answer | {
        "figures": figures,
        "head": table.head(dataset),
        "rows": list(islice(table.rows(dataset), MOST_ROWS)),
        "provenance": provenance.rows(opened.origins, opened.damage),
    }

"""How scenarios and results look in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from daqloom.result_rows import FORM_HEAD, METRIC_HEAD, form_rows, metric_rows

if TYPE_CHECKING:
    from daqloom.result import Result
    from daqloom.scenario.models import Scenario


def result_html(result: Result) -> str:
    """Metrics, closed forms and what a reader should know, as tables and a list."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    title = f"{result.method}{seed}" + (", interrupted" if result.interrupted else "")
    parts = [f"<b>{escape(result.scenario)}</b>: {escape(title)}"]
    if result.analysis:
        parts.append(_table(FORM_HEAD, form_rows(result)))
    parts.append(_table(METRIC_HEAD, metric_rows(result)))
    notes = [f"<li>{escape(warning)}</li>" for warning in result.warnings]
    return "\n".join([*parts, *(["<ul>", *notes, "</ul>"] if notes else [])])


def system_html(system: Scenario) -> str:
    """What the scenario says itself; all keys with their defaults are folded away."""
    from daqloom.scenario import to_toml

    given = system.model_dump(
        mode="json", exclude_unset=True, exclude={"name", "title", "description"}
    )
    title = f": {escape(system.title)}" if system.title else ""
    return "\n".join(
        [
            f"<b>{escape(system.name)}</b>{title}",
            _table(("key", "value"), _leaves(given)),
            f"<details><summary>all keys</summary><pre>{escape(to_toml(system))}</pre></details>",
        ]
    )


def _leaves(table: dict[str, object], path: str = "") -> Iterable[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", str(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return "\n".join(["<table>", *lines, "</table>"])


def _row(cell: str, texts: Sequence[str]) -> str:
    style = ' style="text-align:left"'
    return "<tr>" + "".join(f"<{cell}{style}>{escape(text)}</{cell}>" for text in texts) + "</tr>"

"""Reference of the counters of a unit, from the engine's descriptions, and of the metrics of a run:
`python -m daqloom.control.counters.reference` writes the tables in docs/reference/operations.md."""

import sys
from pathlib import Path

from daqloom._engine import known_counters
from daqloom.base import lazy

with lazy.imports():
    from daqloom.control.counters import run_metrics


def counter_meanings() -> dict[str, str]:
    """Return the meaning of each counter by name."""
    return {each.name: each.meaning for each in known_counters()}


def counter_table() -> str:
    """Return the counters as a Markdown table."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in counter_meanings().items()]
    return "\n".join(["| counter | meaning |", "|---|---|", *rows])


def run_table() -> str:
    """Return the metrics of a run as a Markdown table."""
    rows = [
        f"| `{run_metrics.PREFIX}{metric.name}` | {f'`{metric.label}`' if metric.label else ''} "
        f"| {metric.meaning} |"
        for metric in run_metrics.METRICS
    ]
    return "\n".join(["| metric | label | meaning |", "|---|---|---|", *rows])


TABLES = {"counters": counter_table, "metrics of a run": run_table}


def written_into(page: str) -> str:
    """Return the page with each table between its marks. Raises ValueError without marks."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by `make docs` -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = page.partition(begin)
        _, is_ended, after = rest.partition(end)
        if not (found and is_ended):
            raise ValueError(f"the page has no lines {begin.strip()} and {end.strip()}")
        page = f"{before}{begin}\n{table()}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text()))

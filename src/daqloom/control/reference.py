"""Reference of the counters of units and of the metrics of runs: `python -m
daqloom.control.reference` writes the tables in docs/reference/operations.md."""

import sys
from pathlib import Path

from daqloom.control.counters import reference as counters
from daqloom.control.run_metrics import METRICS, PREFIX


def run_table() -> str:
    """Return the metrics of a run as a Markdown table."""
    rows = [
        f"| `{PREFIX}{each.name}` | {f'`{each.label}`' if each.label else ''} | {each.meaning} |"
        for each in METRICS
    ]
    return "\n".join(["| metric | label | meaning |", "|---|---|---|", *rows])


def written_into(page: str) -> str:
    """Return the page with each table between its marks. Raises ValueError without marks."""
    for name, table in (("counters", counters.table()), ("metrics of a run", run_table())):
        begin, end = f"<!-- {name}: written by `make docs` -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = page.partition(begin)
        _, is_ended, after = rest.partition(end)
        if not (found and is_ended):
            raise ValueError(f"the page has no lines {begin.strip()} and {end.strip()}")
        page = f"{before}{begin}\n{table}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text()))

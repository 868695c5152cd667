"""Reference of a unit's counters, from the engine's descriptions: `python -m
daqloom.control.counters.reference` writes the table in docs/reference/operations.md."""

import sys
from pathlib import Path

from daqloom._engine import known_counters

BEGIN = "<!-- counters: written by `make docs` -->\n"
END = "<!-- end of counters -->\n"


def counter_meanings() -> dict[str, str]:
    """Return the meaning of each counter by name."""
    return {each.name: each.meaning for each in known_counters()}


def table() -> str:
    """Return the counters as a Markdown table."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in counter_meanings().items()]
    return "\n".join(["| counter | meaning |", "|---|---|", *rows, ""])


def written_into(page: str) -> str:
    """Return the page with the table between its marks. Raises ValueError without marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(written_into(page.read_text()))

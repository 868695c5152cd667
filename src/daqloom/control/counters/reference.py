"""Reference of a unit's counters, from the engine's descriptions."""

from daqloom._engine import known_counters


def counter_meanings() -> dict[str, str]:
    """Return the meaning of each counter by name."""
    return {each.name: each.meaning for each in known_counters()}


def table() -> str:
    """Return the counters as a Markdown table."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in counter_meanings().items()]
    return "\n".join(["| counter | meaning |", "|---|---|", *rows])

"""Texts on searches that found no boundary; such results are kept and flagged."""

from collections.abc import Mapping

from daqloom.study.file.bisection import Find

_WORDS: dict[tuple[str, str], tuple[str, str]] = {
    ("smallest", "below"): ("{low} or less", "it holds even at {low}"),
    ("smallest", "never"): ("never up to {high}", "it does not hold even at {high}"),
    ("smallest", "reversed"): (
        "reversed",
        'it holds at {low} and fails at {high}, as if the "largest" were meant',
    ),
    ("largest", "above"): ("{high} or more", "it holds even at {high}"),
    ("largest", "never"): ("never from {low} on", "it does not hold even at {low}"),
    ("largest", "reversed"): (
        "reversed",
        'it fails at {low} and holds at {high}, as if the "smallest" were meant',
    ),
}
"""Texts for a table cell and for a sentence, by (`find`, status of the boundary)."""


def word(status: str, find: Find, low: str, high: str) -> str:
    """Return the text of a table cell: "60 kHz or more". `low` and `high` include the unit."""
    return _WORDS[find, status][0].format(low=low, high=high)


def sentence(statuses: Mapping[str, int], find: Find, low: str, high: str) -> str:
    """Return "2 of 9 searches found no boundary within 6 MB to 400 MB: at 2 it holds even at …".
    `statuses` counts all searches by status, including found ones. Returns "" if all found a
    boundary."""
    ended = {status: n for status, n in statuses.items() if n and status != "found"}
    if not ended:
        return ""
    reasons = "; ".join(
        f"at {n} {_WORDS[find, status][1].format(low=low, high=high)}"
        for status, n in sorted(ended.items())
    )
    return (
        f"{sum(ended.values())} of {sum(statuses.values())} searches found no boundary within "
        f"{low} to {high}: {reasons}. They are kept and flagged; use wider bounds to find one."
    )

"""The rows of the tables in which people read a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from daqloom.metrics import flatten, for_people, with_unit

METRIC_HEAD = ("metric", "value")
FORM_HEAD = ("closed form", "value", "applies")


def metric_rows(method: str, metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of each metric of a method's result, with its unit."""
    return [
        (name, for_people(name, value))
        for name, value in _few(flatten(_for_table(method, metrics)))
    ]


_UNITS = {"bytes": "B", "s": "s", "hz": "Hz", "bps": "bit/s", "share": "1"}
"""Unit of a number of a closed form, by the end of its name."""


def form_rows(analysis: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Name, value and validity of each closed form."""
    return list(_forms(analysis))


def _for_table(method: str, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Of a measurement without what a sentence tells better, and without causes that did not
    happen."""
    shown: dict[str, Any] = dict(metrics)
    if method != "measure":
        return shown
    shown.pop("events_accounted", None)
    if not shown.get("idle_share"):
        shown.pop("idle_share", None)
    waiting = {why: share for why, share in shown.get("waiting_share", {}).items() if share}
    return {**shown, "waiting_share": waiting} if "waiting_share" in shown else shown


MOST_OF_A_KIND = 8
"""Most metrics of numbered links or ports that a table shows; a rack has hundreds of them."""


def _few(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    counts = Counter(root for root, numbered in map(_kind, metrics) if numbered)
    for name, value in metrics.items():
        root, numbered = _kind(name)
        if not numbered or counts[root] <= MOST_OF_A_KIND:
            yield name, value


def _kind(name: str) -> tuple[str, bool]:
    root, *parts = name.split(".")
    return root, any(part.isdigit() for part in parts)


def _forms(analysis: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for name, entry in analysis.items():
        if _unit(name):  # one number each for several places
            for place, value in entry.items():
                yield f"{name}.{place}", with_unit(value, _unit(name)), ""
            continue
        main = "value_bytes" if "value_bytes" in entry else next(iter(entry))
        holds = ""
        if "valid" in entry:
            holds = "yes" if entry["valid"] else f"no: {entry.get('failing', '')}"
        if "satisfied" in entry:
            holds += f" · verdict: {'safe' if entry['satisfied'] else 'at risk'}"
        yield name, with_unit(entry[main], _unit(main)), holds


def _unit(name: str) -> str:
    return _UNITS.get(name.rpartition("_")[2], "")

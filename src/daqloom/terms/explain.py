"""Explanations of a word that a user reads or types: a key of a file, a metric, a counter of a
unit, a term of the glossary, or another name of one of these."""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from daqloom.base import lazy
from daqloom.control.counters.reference import counter_meanings
from daqloom.results.metrics import COST, METRICS, Metric
from daqloom.scenario import synonyms
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import named_as
from daqloom.scenario.file.reference import (
    default_in_words,
    sentence_of,
    values_of,
)
from daqloom.scenario.file.unused_keys import UNUSED
from daqloom.scenario.quantities import dimension_of, example_of
from daqloom.scenario.schema.choices import Key, all_keys, named_tables
from daqloom.scenario.schema.part import When
from daqloom.terms import glossary
from daqloom.terms.formats import FORMATS, Format

with lazy.imports():
    import difflib

    from daqloom.device import registry

NAMED = "NAME"
"""Part of a dotted name that users choose, such as that of a flow."""
NEAREST = 4
"""Names that the error on an unknown word lists."""


@dataclass(frozen=True)
class Explanation:
    """Explanation of a word. Empty fields do not apply."""

    kind: str
    """Kind of the thing that the word names, such as "key of a scenario"."""
    names: tuple[str, ...]
    """Full names with this meaning."""
    meaning: str
    unit: str = ""
    values: str = ""
    default: str = ""
    applies: tuple[str, ...] = ()
    """Conditions, and methods that give a metric or ignore a key."""
    see: tuple[str, ...] = field(default=())
    """Related commands and pages."""


class _Place(NamedTuple):
    """A key or table of a format."""

    path: str
    format: Format
    key: Key

    @property
    def meaning(self) -> str:
        text, table = re.sub(r"^(See )?\[[a-z_.]+\](: )?", "", self.key.meaning), self.key.table
        of_table = (table.__doc__ or "").partition("\n\n")[0] if table else ""
        return text or re.sub(r"^\[[a-zA-Z_.]+\]: ", "", " ".join(of_table.split()))

    def is_named_by(self, word: str) -> bool:
        """Return whether a word is the dotted name, or its end."""
        path = self.path.replace(NAMED, "*")
        return self.path.endswith(f".{word}") or named_as(word, path) == word


def explain(word: str) -> list[Explanation]:
    """Return the explanations of a word. Raises ScenarioError for an unknown word, with the nearest
    known names."""
    word = word.strip().strip("`\"'[]").removeprefix("--").partition("=")[0].strip()
    is_key = partial(_Place.is_named_by, word=word)
    found = [
        *_keys(is_key),
        *(_of_metric(metric) for metric in (*METRICS, *COST) if _is_metric(metric, word)),
        *_counters(word),
        *(_of_term(term) for term in glossary.matching(word)),
    ]
    found = found or [*_synonyms(word), *_values(word)] or [*_keys(is_key, _places_of_adapters)]
    if not found:
        near = difflib.get_close_matches(word[:200], names(), n=NEAREST, cutoff=0.6)
        near = near or [name for name in names() if len(word) > 2 and word in name][:NEAREST]
        others = ", ".join(f'"{name}"' for name in near)
        hint = f"did you mean one of {others}?" if near else "see docs/reference/glossary.md"
        raise ScenarioError(f'"{word[:80]}" is no key, metric or term; {hint}')
    return found


def as_record(word: str, explanations: Sequence[Explanation]) -> dict[str, Any]:
    """Return the JSON object of the explanations of a word, without empty fields."""
    records = [{key: v for key, v in asdict(each).items() if v} for each in explanations]
    return {"schema": 1, "term": word, "explanations": records}


@functools.cache
def names() -> tuple[str, ...]:
    """Return all names that `explain` explains, without synonyms and values."""
    known = [
        *(place.path for place in _places()),
        *(metric.name.removesuffix(".*") for metric in (*METRICS, *COST)),
        *counter_meanings(),
        *(term.title.partition(" (")[0] for term in glossary.TERMS),
    ]
    return tuple(dict.fromkeys(known))


@functools.cache
def _places() -> tuple[_Place, ...]:
    return tuple(place for each in FORMATS for place in _places_of(each, each.model()))


def _places_of(format_: Format, model: type[BaseModel], prefix: str = "") -> Iterator[_Place]:
    for key in all_keys(model):
        path = key.path + (".*" if named_tables(key.field) else "")
        yield _Place(prefix + path.replace("*", NAMED), format_, key)


@functools.cache
def _places_of_adapters() -> tuple[_Place, ...]:
    """Return the keys of installed adapters, whose packages are imported; without broken ones."""
    found: list[_Place] = []
    device = FORMATS[-1]
    for name in registry.names():
        with suppress(ScenarioError):
            adapter = registry.adapter_type(name)
            table = "configure" if hasattr(adapter, "apply") else "count"
            format_ = device._replace(name=f"device with the adapter {name}")
            found += _places_of(format_, adapter.Options, f"{table}.")
    return tuple(found)


def _keys(
    is_meant: Callable[[_Place], bool], among: Callable[[], tuple[_Place, ...]] = _places
) -> Iterator[Explanation]:
    """Yield explanations of keys and tables; one for keys with the same meaning and default, such
    as those of switches."""
    groups: dict[object, list[_Place]] = {}
    for place in filter(is_meant, among()):
        key, default = place.key, default_in_words(place.key)
        alike = (place.format, key.table, key.name, place.meaning, default)
        groups.setdefault(alike, []).append(place)
    for places in groups.values():
        table = places[0].key.table
        yield _of_table(places, table) if table else _of_key(places)


def _of_table(places: list[_Place], table: type[BaseModel]) -> Explanation:
    first = places[0]
    return Explanation(
        kind=f"table of a {first.format.name}",
        names=tuple(place.path for place in places),
        meaning=_sentence(first.meaning),
        values=f"keys: {', '.join(table.model_fields)}",
        applies=tuple(_conditions(places)),
        see=(f"daqloom schema {first.format.kind}", first.format.page),
    )


def _of_key(places: list[_Place]) -> Explanation:
    first = places[0]
    dimension, example = dimension_of(first.key.field), example_of(first.key.field)
    values = values_of(first.key.field).replace("`", "")
    default = default_in_words(first.key)
    return Explanation(
        kind=f"key of a {first.format.name}",
        names=tuple(place.path for place in places),
        meaning=_sentence(sentence_of(first.key)),
        unit=dimension.unit if dimension else "",
        values=f'{values}, such as "{example}"' if example else values,
        default="none, the key is required" if default == "required" else default,
        applies=(*_conditions(places), *_without_effect(first)),
        see=(first.format.command.format(first.path), first.format.page),
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _conditions(places: list[_Place]) -> Iterator[str]:
    """Yield the conditions under which keys apply, first those of all."""
    each = {place.path: _conditions_of(place) for place in places}
    common = [
        text for text in each[places[0].path] if all(text in texts for texts in each.values())
    ]
    yield from common
    for path, texts in each.items():
        yield from (f"{path}: {text}" for text in texts if text not in common)


def _conditions_of(place: _Place) -> list[str]:
    texts = (f"only with {_in_words(each)}" for each in place.key.conditions)
    return list(dict.fromkeys(texts))


def _in_words(condition: When) -> str:
    among = f" = {' or '.join(each or 'none' for each in condition.among)}"
    text = condition.key + (among if condition.among else "")
    return f"{text}, or {condition.or_with}" if condition.or_with else text


def _without_effect(place: _Place) -> Iterator[str]:
    """Yield the methods that ignore a key of a scenario, in all systems or in some."""
    if place.format.kind != "scenario":
        return
    for method, rules in UNUSED.items():
        for rule in rules:
            if rule.name(place.path):
                some = "" if rule.when is type(rule).when else " in some systems"
                why = f": {rule.why}" if rule.why else ""
                yield f"not to {method}{some}{why}"


def _is_metric(metric: Metric, word: str) -> bool:
    root = metric.name.removesuffix(".*")
    parts = root != metric.name and word.startswith(f"{root}.")
    return word in (metric.name, root, metric.label) or parts or root.startswith(f"{word}.")


def _of_metric(metric: Metric) -> Explanation:
    return Explanation(
        kind="metric" if metric in METRICS else "cost of a computation",
        names=(metric.name,),
        meaning=metric.meaning,
        unit="share, shown in per cent" if metric.unit == "1" else metric.unit,
        applies=(f"given by {metric.givers()}",),
        see=("daqloom simulate SCENARIO --json", "docs/reference/metrics.md"),
    )


def _counters(word: str) -> Iterator[Explanation]:
    for name, meaning in counter_meanings().items():
        if word in (name, name.rpartition(".")[2]):
            see = ("daqloom control status", "docs/reference/operations.md")
            yield Explanation("counter of a unit", (name,), meaning, see=see)


def _of_term(term: glossary.Term) -> Explanation:
    keys = [name for name in re.findall("`([a-z_.]+)[^`]*`", term.meaning) if "." in name]
    see = (*(f"daqloom explain {key}" for key in keys), "docs/reference/glossary.md")
    return Explanation("term", (term.title,), term.meaning, see=see)


def _values(word: str) -> Iterator[Explanation]:
    """Yield the keys of a scenario that have a word among their values, or its other name."""
    lower = word.lower()
    if absent := synonyms.NOT_SIMULATED.get(lower):
        yield Explanation("not simulated", (word,), f"{absent}.")
    longer = (value for value in _words() if len(lower) > 2 and lower in value)
    for value in (lower, *synonyms.VALUES.get(lower, ()), *longer):
        if found := list(_keys(partial(_takes, f"`{value}`"))):
            yield from found
            return


@functools.cache
def _words() -> tuple[str, ...]:
    """Return all words that keys take as values."""
    texts = (values_of(place.key.field) for place in _places() if not place.key.table)
    return tuple(dict.fromkeys(word for text in texts for word in re.findall("`(.+?)`", text)))


def _takes(value: str, place: _Place) -> bool:
    return not place.key.table and value in values_of(place.key.field).split(", ")


def _synonyms(word: str) -> Iterator[Explanation]:
    """Yield the keys that users mean by another name."""
    table, _, last = word.rpartition(".")
    meant = synonyms.KEYS.get(last.lower(), ())
    yield from _keys(
        lambda place: (
            not place.key.table
            and not {place.key.name, place.path}.isdisjoint(meant)
            and (not table or place.path.startswith(f"{table}."))
        )
    )

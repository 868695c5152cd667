"""The schemas of files: those of the models, true of all shipped files, and as strict as the
loaders in all that concerns a single key."""

import copy
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

import daqloom
from daqloom.cli.schema import text_of
from daqloom.deployment.scenarios import load
from daqloom.device.document import load_device
from daqloom.device.registry import configuring, counting
from daqloom.scenario.document import ABSENT, look, put
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.show import toml_value
from daqloom.softswitch import load as switches
from daqloom.study import StudyError
from daqloom.study.file.load import load_study
from daqloom.study.reproduction.compute import studies
from daqloom.study.reproduction.record import load_record
from daqloom.terms.formats import FORMATS
from support.command import refusal
from support.repository import ROOT

FIRST_LINE = re.compile(r"#:schema (\S+/(\w+)\.json)\n")
SCHEMAS = {each.kind: each.schema for each in FORMATS}
KINDS = {"scenarios": "scenario", "studies": "study", "published": "published"}
"""Folders of shipped files, and the kind of file of each."""
SHIPPED = [path for folder in KINDS for path in ROOT.glob(f"{folder}/*.toml")]
BENCHMARKS = sorted(ROOT.glob("benchmarks/*/*.toml"))


class Example(NamedTuple):
    """A whole file, from a page or of the repository."""

    name: str
    kind: str
    document: dict[str, Any]


def on_pages() -> Iterator[Example]:
    """Yield the blocks of pages that name a schema: whole files."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            if found := FIRST_LINE.match(block):
                yield Example(page.stem, found[2], tomllib.loads(block))


def shipped() -> Iterator[Example]:
    for path in sorted(SHIPPED):
        yield Example(path.stem, KINDS[path.parent.name], tomllib.loads(path.read_text()))


PAGES = list(on_pages())
ALONE = [*shipped(), *(each for each in PAGES if each.kind in ("switch", "device"))]
"""Files that need no others beside them."""
for _each in ALONE:
    _each.document.pop("credentials", None)


@cache
def validator(kind: Any) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[kind]())


def mistakes(kind: str, document: dict[str, Any]) -> list[str]:
    return [f"{each.json_path}: {each.message}" for each in validator(kind).iter_errors(document)]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    known = "known are scenario, study, switch, published, device"
    assert known in refusal("schema", "scenarios")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_schema_in_the_repository_is_that_of_the_models(kind: Any) -> None:
    found = (ROOT / "schemas" / f"{kind}.json").read_text()
    assert found == text_of(kind), f"run: daqloom schema {kind} --output schemas/{kind}.json"
    Draft202012Validator.check_schema(SCHEMAS[kind]())
    assert "null" not in found, "TOML has no null"


@pytest.mark.parametrize("path", [*SHIPPED, *BENCHMARKS], ids=lambda path: path.stem)
def test_a_file_names_its_schema_in_its_first_line_and_obeys_it(path: Path) -> None:
    text = path.read_text()
    named = FIRST_LINE.match(text)
    assert named, f'{path} begins without "#:schema PATH"'
    assert (path.parent / named[1]).resolve().parent == ROOT / "schemas"
    assert mistakes(named[2], tomllib.loads(text)) == []


def test_schemas_are_beside_scenarios_and_studies_in_the_package_as_in_the_repository() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    for name in (*KINDS, "schemas"):
        assert build["wheel"]["packages"][f"daqloom/{name}"] == name


@pytest.mark.parametrize("example", PAGES, ids=lambda each: f"{each.name}-{each.kind}")
def test_a_whole_file_on_a_page_obeys_its_schema(example: Example) -> None:
    assert mistakes(example.kind, example.document) == []


def test_every_kind_of_file_has_an_example() -> None:
    assert {each.kind for each in (*PAGES, *shipped())} == set(SCHEMAS)


@pytest.mark.parametrize("name", ["atlas-lab", "lhcb-full-chain", "lab-rack", "ib-buffer-probe"])
def test_a_scenario_as_shown_obeys_the_schema(name: str) -> None:
    assert mistakes("scenario", tomllib.loads(daqloom.load(name).show())) == []


# ---- broken files

QUANTITY = re.compile(r"[0-9.]+ [A-Za-z/]+")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_word(value: object) -> bool:
    return isinstance(value, str) and not QUANTITY.fullmatch(value)


def is_quantity(value: object) -> bool:
    return isinstance(value, str) and QUANTITY.fullmatch(value) is not None


MUTATIONS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any]]] = {
    "unknown key": (lambda v: isinstance(v, dict), lambda v: v | {"nonsense": 1}),
    "value in place of a table": (lambda v: isinstance(v, dict), lambda _: 5),
    "list in place of a table": (lambda v: isinstance(v, dict), lambda _: ["a"]),
    "table in place of a value": (lambda v: not isinstance(v, dict), lambda _: {"nonsense": 1}),
    "quantity without a unit": (is_quantity, lambda _: "5"),
    "number in place of a quantity": (is_quantity, lambda _: 5),
    "unknown unit": (is_quantity, lambda _: "5 furlong"),
    "unit of another dimension": (is_quantity, lambda v: "5 s" if "B" in v or "b" in v else "5 B"),
    "negative quantity": (is_quantity, lambda v: re.sub(r"^[0-9.]+", "-5", v)),
    "decimal comma": (is_quantity, lambda v: re.sub(r"^[0-9.]+", "1,5", v)),
    "number in place of a word": (is_word, lambda _: 5),
    "truth in place of a word": (is_word, lambda _: True),
    "text in place of a number": (is_number, lambda _: "many"),
    "truth in place of a number": (is_number, lambda _: True),
    "number out of range": (is_number, lambda _: -1_000_000_007),
    "text in place of a truth": (lambda v: isinstance(v, bool), lambda _: "yes"),
    "number in place of a truth": (lambda v: isinstance(v, bool), lambda _: 1),
    "text in place of a list": (lambda v: isinstance(v, list), lambda _: "a"),
}
"""Kind of mistake → values to which it applies, and the mistaken value."""


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the place and value of each key and table, and of each entry of a list."""
    if path:
        yield path, document
    if isinstance(document, dict | list):
        inner = document.items() if isinstance(document, dict) else enumerate(document[:1])
        for key, value in inner:
            yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a document with another value at a place."""
    if not path:
        return value
    copied = copy.copy(document)
    copied[path[0]] = changed(document[path[0]], path[1:], value)
    return copied


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """Return a document without a key."""
    *around, key = path
    found = copy.deepcopy(document)
    table = found
    for each in around:
        table = table[each]
    del table[key]
    return found


def toml_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return toml_value(value)


def read(kind: str, document: dict[str, Any], folder: Path) -> None:
    """Read a file as the commands do. Raises ScenarioError, StudyError."""
    path = folder / "file.toml"
    path.write_text("".join(f"{json.dumps(k)} = {toml_of(v)}\n" for k, v in document.items()))
    match kind:
        case "scenario":
            load(path)
        case "study":
            load_study(path)
            load_study(path, quick=True)
        case "switch":
            switches.load(path)
        case "device":
            device = load_device(path)
            configuring(device, str(path))
            counting(device, str(path))
        case "published":
            record = load_record(path)
            for quick in (False, True):
                list(studies(path, record, quick=quick))


EITHER = {"host", "source", "destination", "barrier_group"}
"""Keys that take a word as well as a number."""
MOST_PLACES = 6
"""Broken files of a kind of mistake and a kind of file."""
LOADER_ONLY = {
    *("search.bounds", "search.tolerance", "repeat.seeds", "lanes.low"),
    *("ours.at", "ours.fit", "ours.factor.below", "published", "stored"),
}
"""Tables and keys of shipped files whose values depend on other keys, or may be any number."""


def samples(kind: str, mistake: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield files with a mistake, each at another key: the place, and the content."""
    applies, mistaken = MUTATIONS[mistake]
    seen: set[str] = set()
    for each in ALONE:
        for path, value in places(each.document) if each.kind == kind else ():
            names = [part for part in path if isinstance(part, str)]
            last = names[-1].rpartition(".")[2]
            depends = any(key in ".".join(names) for key in LOADER_ONLY)
            if applies(value) and not depends and last not in seen | EITHER:
                seen.add(last)
                yield f"{each.name}: {path}", changed(each.document, path, mistaken(value))
            if len(seen) == MOST_PLACES:
                return


def test_there_are_hundreds_of_broken_files_of_every_kind_of_mistake() -> None:
    numbers = [sum(1 for kind in SCHEMAS for _ in samples(kind, each)) for each in MUTATIONS]
    assert min(numbers) >= 3
    assert sum(numbers) >= 300


@pytest.mark.parametrize("mistake", MUTATIONS)
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_mistake_is_refused_by_schema_and_loader(kind: Any, mistake: str, tmp_path: Path) -> None:
    for place, document in samples(kind, mistake):
        assert mistakes(kind, document), f"the schema takes {place}"
        with pytest.raises((ScenarioError, StudyError)):
            read(kind, document, tmp_path)


def required() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the kind of a file, the file without a required key, and the key."""
    found = {
        "scenario": ["flows.stream.source", "flows.stream.destination"],
        "study": ["scenario", "search.key", "search.where", "search.bounds", "search.tolerance"],
        "switch": ["ports", "ports.dcm.device", "rings.dcm.port"],
        "device": ["ports", "configure.adapter", "configure.address", "count.address"],
    }
    for kind, keys in found.items():
        for key in keys:
            path = tuple(key.split("."))
            example = next(e for e in ALONE if e.kind == kind and look(e.document, key) != ABSENT)
            yield kind, without(example.document, path), key


@pytest.mark.parametrize(("kind", "document", "key"), list(required()), ids=lambda v: str(v)[:40])
def test_a_missing_key_is_refused_by_both(
    kind: Any, document: dict[str, Any], key: str, tmp_path: Path
) -> None:
    assert any(repr(key.rpartition(".")[2]) in each for each in mistakes(kind, document)), key
    with pytest.raises((ScenarioError, StudyError)):
        read(kind, document, tmp_path)


WORDS: dict[str, dict[str, Any]] = {
    "scenario": {"building.protocol": "pulling", "network.technology": "ib", "event.arrivals": "x"},
    "study": {"methods": ["guess"], "repeat.seeds": {}, "report.show": ["nonsense_hz"]},
    "switch": {"pace_counts": "bits", "addresses.unknown": "keep", "rules.x": {"action": "hold"}},
    "device": {"level": "rack", "configure.adapter": "nonsense", "limits.rate": "fast"},
    "published": {"paper": "nonsense", "relation": "near", "ours.method": "guess"},
}
"""Values that are none of those that the key has."""


@pytest.mark.parametrize(
    ("kind", "key", "value"), [(k, key, v) for k, keys in WORDS.items() for key, v in keys.items()]
)
def test_an_unknown_value_is_refused_by_both(
    kind: Any, key: str, value: object, tmp_path: Path
) -> None:
    document = copy.deepcopy(next(each.document for each in ALONE if each.kind == kind))
    put(document, key, value)
    assert mistakes(kind, document)
    with pytest.raises((ScenarioError, StudyError)):
        read(kind, document, tmp_path)


LEFT_TO_THE_LOADER: dict[str, tuple[str, dict[str, Any]]] = {
    "a quantity out of range": ("scenario", {"event.size": "1e9 TB"}),
    "a zero where none is allowed": ("scenario", {"network.mtu": "0 B"}),
    "a fraction of a byte": ("scenario", {"event.size": "0.5 B"}),
    "a whole number with a point": ("scenario", {"readout.units": 48.0}),
    "a key that does not apply": ("scenario", {"building.credits": 4}),
    "a key of another model of switch": ("scenario", {"network.switch.tor.pace": "1 Gb/s"}),
    "keys that contradict each other": ("scenario", {"measure.warmup": "50 s"}),
    "a file that does not exist": (
        "scenario",
        {"event.size_distribution": "histogram", "event.size_histogram": "none.txt"},
    ),
    "an address": ("scenario", {"measure.bind": "127.0.0.300"}),
    "a condition on metrics": ("study", {"search.where": "nonsense < 1"}),
    "values of the key that is searched": ("study", {"search.bounds": ["1 s", "2 s"]}),
    "a scenario that does not exist": ("study", {"scenario": "nonsense"}),
    "a name that is given elsewhere": ("switch", {"rings.dcm.port": "nonsense"}),
    "a port that is named twice": ("device", {"ports": ["Ethernet0", "Ethernet0"]}),
}
"""Kinds of mistakes that only the loader knows: rules across keys and files, ranges of quantities,
addresses, and conditions."""


@pytest.mark.parametrize("mistake", LEFT_TO_THE_LOADER)
def test_a_rule_across_keys_is_left_to_the_loader(mistake: str, tmp_path: Path) -> None:
    kind, keys = LEFT_TO_THE_LOADER[mistake]
    start = {"scenario": "atlas-lab", "study": "atlas-max-rate"}
    named = next(e for e in ALONE if e.kind == kind and e.name == start.get(kind, e.name))
    document = copy.deepcopy(named.document)
    for key, value in keys.items():
        put(document, key, value)
    assert mistakes(kind, document) == []
    with pytest.raises((ScenarioError, StudyError)):
        read(kind, document, tmp_path)

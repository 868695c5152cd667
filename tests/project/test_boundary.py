"""The boundary between engine and Python: its types, its enumerations, its constants."""

import ast
import re
import types
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import BaseModel

import daqloom
from daqloom import _engine
from daqloom.configuration.settings import enumerator, fields_of
from daqloom.control import unit_program
from daqloom.control.protocol import messages
from daqloom.scenario.schema import building, links, measure, switches, transport, units
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.event import Event
from daqloom.simulate import slices

STUB = Path(_engine.__file__).parent / "_engine.pyi"
SOURCES = Path(daqloom.__file__).parent


# ---- types --------------------------------------------------------------------------------------

VAGUE = {"Any", "object", "dict", "list", "tuple", "set", "Callable"}


def annotations(stub: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """The annotations of a stub, with their lines."""
    for item in ast.walk(stub):
        match item:
            case ast.arg(annotation=ast.expr() as found) | ast.AnnAssign(annotation=found):
                yield item.lineno, found
            case ast.FunctionDef(returns=ast.expr() as found):
                yield item.lineno, found


def vague(annotation: ast.expr) -> Iterator[str]:
    """The types in an annotation that say nothing of what they hold."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            yield from vague(first)
        case ast.Subscript(slice=inner):
            yield from vague(inner)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name in VAGUE:
                yield name
        case _:
            for child in ast.iter_child_nodes(annotation):
                if isinstance(child, ast.expr):
                    yield from vague(child)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("Any", ["Any"]),
        ("dict", ["dict"]),
        ("dict[str, int]", []),
        ("dict[str, Any] | None", ["Any"]),
        ("list[tuple[int, object]]", ["object"]),
        ("Annotated[NDArray[numpy.int64], dict(shape=(None,))]", []),
        ("typing.Any", ["Any"]),
    ],
)
def test_vague_types_are_found(annotation: str, expected: list[str]) -> None:
    assert list(vague(ast.parse(annotation, mode="eval").body)) == expected


def test_the_stub_types_everything_in_the_module() -> None:
    stub = ast.parse(STUB.read_text())
    found = [(line, name) for line, each in annotations(stub) for name in vague(each)]
    assert found == []
    functions = [node for node in ast.walk(stub) if isinstance(node, ast.FunctionDef)]
    assert len(functions) > 100
    assert [each.lineno for each in functions if each.returns is None] == []
    named_there = {
        node.name for node in stub.body if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    named_there |= {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert {name for name in dir(_engine) if not name.startswith("_")} == named_there


# ---- enumerations -------------------------------------------------------------------------------


def words(annotation: Any) -> set[str]:
    """All words of the Literals in an annotation."""
    if get_origin(annotation) is Literal:
        return {word for word in get_args(annotation) if isinstance(word, str)}
    if get_origin(annotation) in (Annotated, Union, types.UnionType):
        return set().union(*map(words, get_args(annotation)))
    return set()


MEASURED = {"histogram"}
"""Delays from a file are measured ones, which carry their values."""

CROSSING: list[tuple[type[BaseModel], str, type[Enum], set[str]]] = [
    (Event, "arrivals", _engine.ArrivalKind, set()),
    (Event, "size_distribution", _engine.SizeKind, set()),
    (building.Building, "assignment", _engine.Assignment, set()),
    (Distribution, "kind", _engine.DelayKind, MEASURED),
    (building.Building, "change", _engine.PhaseChange, set()),
    (building.Building, "barrier", _engine.ShiftBarrier, set()),
    (building.Building, "pace", _engine.Pace, set()),
    (building.Building, "write_order", _engine.WriteOrder, set()),
    (building.Building, "protocol", _engine.Protocol, {"pull", "none"}),
    (transport.Transport, "congestion", _engine.CongestionControl, set()),
    (switches.Switches, "input_queue", _engine.InputQueue, set()),
    (switches.Switches, "crossbar_arbiter", _engine.CrossbarArbiter, set()),
    (switches.Switch, "scheduling", _engine.Scheduling, set()),
    (switches.Switches, "credit_release", _engine.CreditRelease, set()),
    (measure.Measure, "waiting", _engine.Waiting, set()),
    (measure.Measure, "source", _engine.SourceKind, set()),
    (measure.Measure, "content", _engine.Content, set()),
    (measure.Measure, "sink", _engine.SinkKind, set()),
    (measure.Measure, "consumers", _engine.Consumers, set()),
    (measure.Measure, "when_full", _engine.WhenFull, set()),
    (Event, "fragment_sizes", _engine.FragmentSizes, set()),
]
"""Key of the scenario, enumeration, and the words that never reach the engine."""


@pytest.mark.parametrize(("model", "key", "kind", "without"), CROSSING)
def test_every_word_of_the_scenario_has_a_value(
    model: type[BaseModel], key: str, kind: type[Enum], without: set[str]
) -> None:
    crossing = words(model.model_fields[key].annotation) - without
    assert crossing
    for word in crossing:
        assert enumerator(kind, word).name == word.replace("-", "_")


def test_every_architecture_change_and_stage_has_a_value() -> None:
    for word in words(switches.Architecture):
        assert enumerator(_engine.BufferModel, word).name == word.replace("-", "_")
    for kind, said in CHANGES.items():
        for word in said.split():
            assert enumerator(kind, word).name == word
    assert words(messages.StageName) == {stage.name for stage in _engine.ShiftStage}


CHANGES: dict[type[Enum], str] = {
    _engine.InfinibandLinkChangeKind: "dark down up rate errors",
    _engine.LinkChangeKind: "down up rate errors",
    _engine.NodeChangeKind: "stop slow",
}
"""Kinds of faults of links and nodes in `simulate.faults`."""


def test_every_enumeration_that_a_scenario_names_is_checked() -> None:
    """Enumerations are those of the fields of engine configurations, and those of `enumerator`."""
    code = "\n".join(path.read_text() for path in SOURCES.rglob("*.py"))
    kinds = [kind for kind in vars(_engine).values() if isinstance(kind, type) and fields_of(kind)]
    types_of_fields = {type(getattr(kind(), name)) for kind in kinds for name in fields_of(kind)}
    used = {each.__name__ for each in types_of_fields if issubclass(each, Enum)}
    used |= set(re.findall(r"enumerator\(_engine\.(\w+)", code))
    checked = {kind.__name__ for _, _, kind, _ in CROSSING} | {kind.__name__ for kind in CHANGES}
    assert used == checked | {"BufferModel"}
    assert "getattr(_engine" not in code


# ---- constants ----------------------------------------------------------------------------------


def test_constants_are_the_engines_where_the_engine_is_not_imported() -> None:
    """Closed forms and the command line start without the engine, which would take them longer."""
    assert links.FRAME_OVERHEAD_BYTES == _engine.ETHERNET_FRAME_OVERHEAD_BYTES
    assert links.WIRE_OVERHEAD_BYTES == _engine.ETHERNET_WIRE_OVERHEAD_BYTES
    assert transport.BLOCK_BYTES == _engine.INFINIBAND_BLOCK_BYTES
    assert transport.HEADER_BYTES == _engine.INFINIBAND_HEADER_BYTES
    assert transport.ADDRESS_BYTES == _engine.INFINIBAND_RDMA_HEADER_BYTES
    assert transport.IMMEDIATE_BYTES == _engine.INFINIBAND_IMMEDIATE_BYTES
    assert transport.ACKNOWLEDGE_BYTES == _engine.INFINIBAND_ACKNOWLEDGE_BYTES
    assert unit_program.TOKEN_BYTES == _engine.TOKEN_BYTES
    assert _engine.BINS % slices.SLICES == 0
    limits = [
        each.le for each in units.Readout.model_fields["streams"].metadata if hasattr(each, "le")
    ]
    assert limits == [_engine.MOST_SIMULATED_STREAMS]
    assert limits[0] <= _engine.MOST_LIVE_STREAMS


# ---- counters of units --------------------------------------------------------------------------


def test_every_counter_is_an_attribute_with_its_meaning() -> None:
    known = _engine.known_counters()
    assert len(known) > 50
    for each in known:
        attribute = each.name.removesuffix(".*").replace(".", "_")
        documented = vars(_engine.Counters)[attribute]
        assert documented.__doc__.endswith(each.meaning)
        if "*" in each.name:
            counted = _engine.Counters({each.name.replace("*", "cause"): 7})
            assert getattr(counted, attribute) == {"cause": 7}
        else:
            assert getattr(_engine.Counters(), attribute) is None
            assert getattr(_engine.Counters({each.name: 7}), attribute) == 7


def test_a_reading_of_counters_is_its_own() -> None:
    given = {"phases": 3}
    counted = _engine.Counters(given)
    given["phases"] = 4
    counted.by_name["phases"] = 5
    assert counted.phases == 3
    assert counted.by_name == {"phases": 3}


def test_no_counter_is_read_by_a_name_in_quotes() -> None:
    read = []
    for path in sorted(SOURCES.rglob("*.py")):
        for each in ast.walk(ast.parse(path.read_text())):
            match each:
                case ast.Subscript(value=of, slice=ast.Constant(value=str(name))):
                    read.append((path.name, ast.unparse(of), name))
                case ast.Call(
                    func=ast.Attribute(value=of, attr="get" | "pop"),
                    args=[ast.Constant(value=str(name)), *_],
                ):
                    read.append((path.name, ast.unparse(of), name))
    assert len(read) > 100
    by_name = {"by_name", "numbers", "plain", "counters", "totals"}
    assert [each for each in read if each[1].rpartition(".")[2] in by_name] == []

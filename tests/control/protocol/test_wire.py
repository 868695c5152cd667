"""Messages and the engine's records have the same fields."""

import typing

import pytest

from daqloom import _engine
from daqloom.control.plan import Plan
from daqloom.control.protocol import wire
from daqloom.control.protocol.messages import (
    AnyOrder,
    AnyReport,
    Message,
    Setup,
    Start,
    read_order,
    read_report,
)
from daqloom.control.protocol.states import State
from support.measure.live_nodes import configure

COUNTERS = {"elapsed_s": 1.5, "meps_built": 7}
PULSE = {"epoch": 3, "state": State.RUNNING, "steps": 9, "suspects": [1, 2]}
RECORDS = [
    ("UnitHeartbeat", {"number": 4, "counters": COUNTERS}),
    ("UnitHeartbeat", {"number": 5, "ended": 0}),
    ("UnitAnswer", {"number": 1, "order": 2, "state": State.READY, "missing": [3]}),
    ("UnitAnswer", {"order": 1, "address": b"\0\xff", "next_mep": 8, "failure": "no memory"}),
    ("ConfigureOrder", {"unit": 1, "units": 2, "heartbeat_s": 0.25, "lease_s": 2.0}),
    ("PrepareOrder", {"epoch": 2, "members": [0, 2], "moved": [(1, 2, -1)]}),
    ("PrepareOrder", {"epoch": 3, "readouts": [0, 1, -1], "builders": [1, -1, 0]}),
    ("ConnectOrder", {"addresses": [(0, b"\0\xff"), (2, b"")], "timeout_s": 0.5}),
    ("StartOrder", {"first_mep": 7, "mep_end": 9, "last_report": 3}),
    ("HaltOrder", {"lost": [1], "timeout_s": 4.0}),
    ("ResetOrder", {}),
    ("ExitOrder", {}),
    ("RenewOrder", {"epoch": 2, "mep_end": 9, "last_report": 3}),
]


def fields_of(record: object) -> dict[str, object]:
    """Return the fields of a record, those of its parts included."""
    kind = type(record)
    fields = {name: getattr(record, name) for name in vars(kind) if not name.startswith("__")}
    for name, value in fields.items():
        if isinstance(value, _engine.UnitPulse):
            fields[name] = fields_of(value)
        elif isinstance(value, _engine.Counters):
            fields[name] = value.by_name
    return fields


@pytest.mark.parametrize(("model", "record"), wire.RECORDS.items())
def test_a_message_has_the_fields_of_its_record(model: type[Message], record: type) -> None:
    others = {"kind"}
    if model in typing.get_args(AnyOrder):
        others |= {"order"}
    if issubclass(model, Setup):
        others |= set(Setup.model_fields)
    if model is Start:
        others |= {"run_number"}
    fields = {name for name in vars(record) if not name.startswith("__")}
    assert set(model.model_fields) - others == fields


def test_each_message_has_a_record() -> None:
    kinds = {*typing.get_args(AnyOrder), *typing.get_args(AnyReport)}
    without = {kind.__name__ for kind in kinds - wire.RECORDS.keys()}
    assert without == {"Hello", "Trace"}


@pytest.mark.parametrize(("name", "fields"), RECORDS)
def test_a_record_is_the_same_behind_its_message(name: str, fields: dict[str, object]) -> None:
    if name == "UnitHeartbeat":
        fields = fields | {"pulse": _engine.UnitPulse(**PULSE)}
    record = getattr(_engine, name)(**fields)
    plan = Plan(run="test", rules=_engine.RunPlan(), scenario={"key": 1}, trace_stages=8)
    sent = wire.message(record, order=6, **vars(plan)).encode()
    message = read_report(sent) if name.startswith("Unit") else read_order(sent)
    again = fields_of(wire.record(message))
    assert again == fields_of(record)


def test_an_order_to_configure_has_the_plan_of_the_run() -> None:
    plan = Plan(run="test", rules=_engine.RunPlan(), scenario={"key": 1}, trace_stages=8)
    record = _engine.ConfigureOrder(unit=1, units=2, heartbeat_s=0.25, lease_s=2.0)
    message = wire.message(record, order=6, **vars(plan))
    expected = {"unit": 1, "units": 2, "heartbeat_s": 0.25, "lease_s": 2.0, "order": 6}
    assert message == configure(**expected, trace_stages=8, scenario={"key": 1})

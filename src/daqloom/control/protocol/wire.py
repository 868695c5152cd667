"""Orders, reports and snapshots between the messages and the engine's run control and unit process:
the fields of a message are those of the engine's record, by name."""

from typing import Any

from daqloom import _engine
from daqloom.control.protocol import messages, snapshot
from daqloom.control.protocol.messages import Message

RECORDS: dict[type[Message], type[Any]] = {
    messages.Pulse: _engine.UnitPulse,
    messages.Heartbeat: _engine.UnitHeartbeat,
    messages.Answer: _engine.UnitAnswer,
    messages.Rejoin: _engine.UnitRejoin,
    messages.Configure: _engine.ConfigureOrder,
    messages.Prepare: _engine.PrepareOrder,
    messages.Connect: _engine.ConnectOrder,
    messages.Start: _engine.StartOrder,
    messages.Halt: _engine.HaltOrder,
    messages.Reset: _engine.ResetOrder,
    messages.Exit: _engine.ExitOrder,
    messages.Renew: _engine.RenewOrder,
    snapshot.TallySnapshot: _engine.TallySnapshot,
    snapshot.Balance: _engine.Balance,
    snapshot.LedgerEpoch: _engine.LedgerEpoch,
    snapshot.UnitSnapshot: _engine.UnitSnapshot,
    snapshot.RunSnapshot: _engine.RunSnapshot,
}
_MODELS = {record: model for model, record in RECORDS.items()}


def record(message: Message) -> Any:
    """Return the engine's record of a message."""
    kind = RECORDS[type(message)]
    return kind(**{name: _value(value) for name, value in message if hasattr(kind, name)})


def _value(value: Any) -> Any:
    if isinstance(value, Message):
        return record(value)
    return [_value(each) for each in value] if isinstance(value, tuple) else value


def message(record: Any, **others: object) -> Message:
    """Return the message of an engine's record. `others`: values of fields that only the message
    has."""
    model = _MODELS[type(record)]
    names = model.model_fields.keys() - {"kind"}
    fields = {name: _field(getattr(record, name, others.get(name))) for name in names}
    return model.model_validate(fields, strict=False)


def _field(value: Any) -> Any:
    if type(value) in _MODELS:
        return message(value)
    if isinstance(value, list):
        return [_field(each) for each in value]
    return getattr(value, "by_name", value)

"""Orders and reports between the messages and the engine's run control and unit process: the fields
of a message are those of the engine's record, by name."""

from typing import Any

from daqloom import _engine
from daqloom.control.protocol import messages
from daqloom.control.protocol.messages import Message

RECORDS: dict[type[Message], type[Any]] = {
    messages.Pulse: _engine.UnitPulse,
    messages.Heartbeat: _engine.UnitHeartbeat,
    messages.Answer: _engine.UnitAnswer,
    messages.Configure: _engine.ConfigureOrder,
    messages.Prepare: _engine.PrepareOrder,
    messages.Connect: _engine.ConnectOrder,
    messages.Start: _engine.StartOrder,
    messages.Halt: _engine.HaltOrder,
    messages.Reset: _engine.ResetOrder,
    messages.Exit: _engine.ExitOrder,
    messages.Renew: _engine.RenewOrder,
}
_MODELS = {record: model for model, record in RECORDS.items()}


def record(message: Message) -> Any:
    """Return the engine's record of a message."""
    kind = RECORDS[type(message)]
    fields = {
        name: record(value) if isinstance(value, Message) else value
        for name, value in message
        if hasattr(kind, name)
    }
    return kind(**fields)


def message(record: Any, **others: object) -> Message:
    """Return the message of an engine's record. `others`: values of fields that only the message
    has."""
    model = _MODELS[type(record)]
    names = model.model_fields.keys() - {"kind"}
    fields = {name: getattr(record, name, others.get(name)) for name in names}
    fields = {name: getattr(value, "by_name", value) for name, value in fields.items()}
    return model.model_validate(fields, strict=False)

"""Log of a program in a format for machines: JSON lines on standard error, or entries of systemd's
journal (https://systemd.io/JOURNAL_NATIVE_PROTOCOL)."""

import json
import logging
import os
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal

LOG = logging.getLogger("daqloom")
LOG.propagate, LOG.disabled = False, True
Format = Literal["text", "json", "journal"]
VARIABLE = "DAQLOOM_LOG"
"""Environment variable with the format, for child processes."""
JOURNAL = "/run/systemd/journal/socket"
PRIORITIES = {logging.ERROR: 3, logging.WARNING: 4, logging.INFO: 6}
"""Priorities of syslog."""
LONGEST = 32 * 1024
"""Longest message of the journal (characters); an entry has to fit into one datagram."""
_context: dict[str, str | int] = {}


def start_log(kind: Format) -> None:
    """Log in this format; as "text", only `report` prints. Raises OSError without a journal."""
    made = {"text": logging.NullHandler, "json": _JsonLines, "journal": _Journal}[kind]()
    for former in LOG.handlers:
        former.close()
    LOG.handlers = [made]
    os.environ[VARIABLE] = kind
    LOG.setLevel(logging.INFO)
    LOG.disabled = kind == "text"


def report(sentence: str, level: int = logging.INFO) -> None:
    """Log a sentence; as text, print it on standard error."""
    if LOG.disabled:
        print(f"daqloom: {sentence}", file=sys.stderr, flush=True)
    else:
        LOG.log(level, "%s", sentence)


def identify(**context: str | int) -> None:
    """Set `run` and `unit` of all entries without their own."""
    _context.update(context)


def _fields(record: logging.LogRecord) -> dict[str, str | int | None]:
    own = {name: getattr(record, name, None) for name in ("run", "unit", "event")}
    return {name: _context.get(name) if value is None else value for name, value in own.items()}


class _JsonLines(logging.StreamHandler[Any]):
    """Writer of entries as JSON objects that always have the same keys."""

    def format(self, record: logging.LogRecord) -> str:
        """See `Handler`."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        entry = {"time": at, "level": record.levelname.lower(), **_fields(record)}
        return json.dumps(entry | {"message": record.getMessage()}, ensure_ascii=False)


class _Journal(logging.Handler):
    """Sender of entries to the journal, which adds the time. It never waits: entries are dropped
    while the journal is full or restarts."""

    def __init__(self) -> None:
        super().__init__()
        os.stat(JOURNAL)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def emit(self, record: logging.LogRecord) -> None:
        """See `Handler`."""
        fields = {f"DAQLOOM_{name.upper()}": value for name, value in _fields(record).items()}
        fields |= {"PRIORITY": PRIORITIES[record.levelno], "SYSLOG_IDENTIFIER": "daqloom"}
        fields["MESSAGE"] = record.getMessage()[:LONGEST]
        with suppress(OSError):
            self._socket.sendto(
                b"".join(_field(*each) for each in fields.items() if each[1] is not None), JOURNAL
            )

    def close(self) -> None:
        """See `Handler`."""
        self._socket.close()
        super().close()


def _field(name: str, value: object) -> bytes:
    """Return a field of an entry; a value with line feeds has its length before it."""
    data = str(value).encode(errors="replace")
    begin = b"\n" + len(data).to_bytes(8, "little") if b"\n" in data else b"="
    return name.encode() + begin + data + b"\n"

"""Who computed: the command line, the machine and the versions, kept beside what was computed."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime


def now() -> str:
    """The time as stores write it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def host() -> str:
    """The name of this machine."""
    return platform.node() or "unknown"


@dataclass(frozen=True, slots=True)
class Session:
    """One process that wrote to a store."""

    command: str
    host: str
    system: str
    processors: int
    python: str
    daqloom: str
    started: str

    @classmethod
    def current(cls) -> Session:
        """Return the session of this process."""
        from daqloom.version import installed

        command = shlex.join(sys.argv).encode(errors="backslashreplace").decode()
        return cls(
            command=command,
            host=host(),
            system=platform.platform(),
            processors=os.cpu_count() or 1,
            python=platform.python_version(),
            daqloom=installed(),
            started=now(),
        )

    def to_json(self) -> str:
        """Return the session as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Session:
        """Reads what `to_json` wrote. Raises ValueError; ignores unknown keys."""
        try:
            given = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        names = {field.name: int if field.name == "processors" else str for field in fields(cls)}
        if not isinstance(given, dict):
            raise ValueError("no object")
        for name, kind in names.items():
            if not isinstance(given.get(name), kind):
                raise ValueError(f"{name} is no {kind.__name__}")
        return cls(**{name: given[name] for name in names})

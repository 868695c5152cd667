"""The events of a run as lines of JSON, to a file that is rotated, or to a command.

python event_lines.py FILE [HOST:PORT]
python event_lines.py '| kcat -P -b broker:9092 -t daqloom' [HOST:PORT]

Each line has the time since the start of the run control, the text, the run and its number. The
program ends with the run. A file is renamed to FILE.1, FILE.2 … when it is full; the oldest is
removed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from daqloom.control.protocol.states import Phase
from daqloom.control.status import Request, Status, steer
from daqloom.results.errors import MeasureError

PERIOD_S = 0.2
LARGEST_BYTES = int(os.environ.get("EVENT_LINES_BYTES", 10_000_000))
KEPT_FILES = 4

Event = tuple[float, str]


def new_events(last: Event | None, status: Status) -> Iterator[Event]:
    """Yield the events after the last one; an entry reports events that the status had dropped."""
    events = list(status.events)
    if last in events:
        events = events[events.index(last) + 1 :]
    elif last is not None:
        yield (last[0], "events are missing here")
    yield from events


def append(path: Path, line: str) -> None:
    """Append a line to a file, and rotate it when it is full."""
    if path.exists() and path.stat().st_size + len(line) > LARGEST_BYTES:
        for number in range(KEPT_FILES - 1, 0, -1):
            older = Path(f"{path}.{number}")
            if older.exists():
                older.replace(f"{path}.{number + 1}")
        path.replace(f"{path}.1")
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def follow(address: str | None, write: Callable[[str], object]) -> None:
    """Write the events of a run until its end."""
    last: Event | None = None
    while True:
        try:
            status = steer(Request(command="status"), address)
        except MeasureError:
            return  # the run control has ended
        for event in new_events(last, status):
            time_s, text = last = event
            about = {"run": status.run, "run_number": status.number}
            write(json.dumps({"time_s": round(time_s, 3), "text": text, **about}) + "\n")
        if status.phase is Phase.ENDED:
            return
        time.sleep(PERIOD_S)


def main(target: str, address: str | None) -> int:
    """Follow a run; return the exit code of the command."""
    if not target.startswith("|"):
        follow(address, lambda line: append(Path(target), line))
        return 0
    with subprocess.Popen(target[1:], shell=True, stdin=subprocess.PIPE, text=True) as command:
        assert command.stdin is not None
        pipe = command.stdin

        def write(line: str) -> None:
            pipe.write(line)
            pipe.flush()

        follow(address, write)
    return command.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))

"""Records of runs as readers see them. All files are bounded, and may be broken or foreign."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from daqloom.base.claims import is_claimed
from daqloom.base.output import write_text
from daqloom.base.words import printable
from daqloom.control.record.record import (
    ABOUT,
    EVENTS,
    LARGEST_LOG_BYTES,
    OLDER,
    SUMMARY,
    TAGS,
    About,
    Summary,
    local_time,
)
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import open_regular, read_text

LARGEST_FILE_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 16
MOST_TAGS = 40
TAG = re.compile(r"[\w.:+-][\w .:+-]{0,59}")
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Past:
    """A run with a record."""

    folder: Path
    about: About
    summary: Summary
    is_live: bool
    """Whether a run control of this machine writes the record."""
    tags: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """State in one word. A run is `abandoned` if its run control was killed."""
        running = self.summary.state == "running"
        return "abandoned" if running and not self.is_live else self.summary.state


def read_run(folder: Path) -> Past:
    """Return the run with its record in a folder. Raises MeasureError for a broken or foreign
    one."""
    is_live = is_claimed(folder)
    about = _read(folder / ABOUT, About)
    if (folder / SUMMARY).exists():
        summary = _read(folder / SUMMARY, Summary)
    else:
        summary = Summary(state="running")
    return Past(folder, about, summary, is_live, _tags(folder))


def _read(path: Path, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(read_text(path, LARGEST_FILE_BYTES))
    except ValidationError as error:
        first = error.errors()[0]
        what = ".".join(map(str, first["loc"])) or "the file"
        why = f"{path}: {printable(what)}: {first['msg'].lower()}"
    except (ValueError, RecursionError) as error:
        why = str(error)
    raise MeasureError(f"{why}; the folder has no whole record of a run")


def _tags(folder: Path) -> tuple[str, ...]:
    with suppress(ValueError, RecursionError):
        found = json.loads(read_text(folder / TAGS, LARGEST_FILE_BYTES))
        if isinstance(found, list):
            return tuple(each for each in found if isinstance(each, str) and TAG.fullmatch(each))
    return ()


def set_tags(past: Past, add: list[str], remove: list[str]) -> tuple[str, ...]:
    """Add and remove tags of a run, and return all. Raises MeasureError, OutputError."""
    for tag in add:
        if not TAG.fullmatch(tag):
            raise MeasureError(
                f'the tag "{printable(tag[:60])}" has other characters than letters, digits, '
                "spaces, and . : + - _, or is longer than 60"
            )
    tags = [each for each in dict.fromkeys([*past.tags, *add]) if each not in remove]
    if len(tags) > MOST_TAGS:
        raise MeasureError(f"{len(tags)} tags for {past.folder.name}; at most {MOST_TAGS}")
    write_text(past.folder / TAGS, json.dumps(tags))
    return tuple(tags)


def read_events(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a run's log that can be read: objects with `time_s`, `text` and further
    names."""
    for name in (OLDER, EVENTS):
        with suppress(OSError), open_regular(folder / name) as file:
            left = LARGEST_LOG_BYTES
            while left > 0 and (line := file.readline(LONGEST_LINE_BYTES)):
                left -= len(line)
                with suppress(ValueError, RecursionError, KeyError, TypeError):
                    entry = json.loads(line)
                    yield entry | {
                        "time_s": float(entry["time_s"]),
                        "text": printable(str(entry["text"])[:1000]),
                    }


AT = "give a time of day such as 03:00, an ISO time, or seconds since the start"


def time_of(past: Past, at: str, end_s: float) -> float:
    """Return the time since the start of a run for seconds, an ISO time, or a time of day, whose
    last occurrence before `end_s` counts. Raises MeasureError."""
    began = past.about.began
    try:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", at):
            time_s = float(at)
        elif re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", at):
            hours, minutes, *seconds = (int(part) for part in at.split(":"))
            last = datetime.fromtimestamp(began.timestamp() + end_s)
            day = last.replace(hour=hours, minute=minutes, second=(*seconds, 0)[0], microsecond=0)
            time_s = day.timestamp() - began.timestamp()
            time_s -= 86_400 if time_s > end_s else 0
        else:
            time_s = datetime.fromisoformat(at).timestamp() - began.timestamp()
    except (ValueError, OverflowError):
        raise MeasureError(f'"{printable(at[:40])}" is no time; {AT}') from None
    if not -1 <= time_s <= end_s + 1:
        raise MeasureError(
            f"{printable(at)} is not within {past.folder.name}, which lasted from "
            f"{local_time(began)} to {local_time(began, end_s)}; {AT}"
        )
    return max(0.0, time_s)

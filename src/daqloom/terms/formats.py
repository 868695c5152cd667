"""Formats of files: their models, JSON Schemas, pages and commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from daqloom.base import lazy
from daqloom.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from pydantic import BaseModel

with lazy.imports():
    from daqloom.device import document as device
    from daqloom.device import json_schema as of_devices
    from daqloom.scenario.file import json_schema as of_models
    from daqloom.scenario.schema import models
    from daqloom.softswitch import document as switch
    from daqloom.study.file import json_schema as of_studies
    from daqloom.study.file import tables
    from daqloom.study.reproduction import json_schema as of_records
    from daqloom.study.reproduction import record


class Format(NamedTuple):
    """A format of files."""

    kind: str
    """Argument of `daqloom schema`."""
    name: str
    """Name of a file, after "a"."""
    model: Callable[[], type[BaseModel]]
    schema: Callable[[], dict[str, Any]]
    page: str
    command: str
    """Command that reads a file, with {} in place of a key."""


FORMATS = (
    Format(
        "scenario",
        "scenario",
        lambda: models.Scenario,
        lambda: of_models.json_schema(models.Scenario, "Scenario"),
        "docs/reference/scenario.md",
        "daqloom show SCENARIO --set {}=…",
    ),
    Format(
        "study",
        "study",
        lambda: tables.StudyFile,
        lambda: of_studies.study_schema(),
        "docs/reference/study.md",
        "daqloom study plan STUDY",
    ),
    Format(
        "switch",
        "switch",
        lambda: switch.SwitchFile,
        lambda: of_models.json_schema(switch.SwitchFile, "Software switch"),
        "docs/reference/software-switch.md",
        "daqloom switch check FILE",
    ),
    Format(
        "published",
        "published number",
        lambda: record.Record,
        lambda: of_records.record_schema(),
        "docs/how-to/reproduce-a-published-number.md",
        "daqloom reproduce NAME",
    ),
    Format(
        "device",
        "device",
        lambda: device.DeviceFile,
        lambda: of_devices.device_schema(),
        "docs/reference/device.md",
        "daqloom lab show FILE",
    ),
)


def format_of(kind: str) -> Format:
    """Return a format by its kind. Raises ScenarioError for an unknown one."""
    for each in FORMATS:
        if each.kind == kind:
            return each
    known = ", ".join(each.kind for each in FORMATS)
    raise ScenarioError(f'there is no format of files "{kind[:80]}"; known are {known}')

"""Loader of a software switch's file, with overrides; errors are ScenarioErrors."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from daqloom.scenario.document import ABSENT, copy_of, forget, look, put
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import refusal
from daqloom.scenario.file.overrides import Overrides, option_of, parse
from daqloom.scenario.toml import read_toml
from daqloom.softswitch.document import SwitchFile

LARGEST_FILE_BYTES = 16 << 20


def load(path: str | PathLike[str], overrides: Overrides = ()) -> SwitchFile:
    """Read the file of a switch. Raises ScenarioError."""
    document = read_toml(Path(path), LARGEST_FILE_BYTES)
    return build(document, overrides, source=str(path))


def alter(switch: SwitchFile, keys: Mapping[str, Any]) -> SwitchFile:
    """Return a switch with changed keys: dotted path → value; None removes the key or table. Raises
    ScenarioError."""
    document = switch.model_dump(mode="json", exclude_unset=True)
    for path, value in keys.items():
        if value is None:
            if look(document, path) is ABSENT:
                raise ScenarioError(f"{path[:80]} is not given, so it cannot be removed")
            forget(document, path)
    return build(document, {path: value for path, value in keys.items() if value is not None})


def build(
    document: Mapping[str, Any], overrides: Overrides = (), *, source: str = ""
) -> SwitchFile:
    """Return the switch that the content of a file describes. Raises ScenarioError."""
    changes, document = parse(overrides, SwitchFile), copy_of(document)
    for path, value in changes.items():
        put(document, path, value)
    try:
        return SwitchFile.model_validate(document)
    except ValidationError as error:
        raise refusal(error, source, changes, option_of(overrides), SwitchFile) from None
    except RecursionError:
        raise ScenarioError(f"{source}: values are nested too deeply") from None

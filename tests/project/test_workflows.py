"""Workflows of public forges run targets of the Makefile and nothing else, on Debian 12."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from support.repository import ROOT, make_targets

WORKFLOWS = [*sorted((ROOT / ".github" / "workflows").iterdir()), ROOT / ".gitlab-ci.yml"]
COMMANDS = {"run", "script", "before_script", "after_script"}
ACTIONS = {"actions/checkout"}
"""Actions that are no command of the project: the sources have to be fetched."""


def values(document: Any) -> Iterator[tuple[str, Any]]:
    """Keys and values of a document, at any depth."""
    if isinstance(document, dict):
        yield from document.items()
    for each in document.values() if isinstance(document, dict) else document:
        if isinstance(each, dict | list):
            yield from values(each)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_calls_the_makefile_alone(workflow) -> None:
    found = list(values(yaml.safe_load(workflow.read_text())))
    commands = [
        line
        for key, value in found
        if key in COMMANDS
        for text in (value if isinstance(value, list) else [value])
        for line in text.splitlines()
    ]
    assert commands == ["make lint test wheel"]
    assert set(commands[0].split()[1:]) <= make_targets()
    assert [value for key, value in found if key == "image"] == ["python:3.11-bookworm"]
    assert {value.partition("@")[0] for key, value in found if key == "uses"} <= ACTIONS

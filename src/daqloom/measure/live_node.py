"""Makes the engine's node of a unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daqloom import _engine
from daqloom.measure.configure import live_config
from daqloom.measure.node import Node, RunInfo
from daqloom.measure.open_files import check_open_files, files_of_a_unit
from daqloom.measure.pinning import pin
from daqloom.scenario.models import Scenario


def live_node(document: Mapping[str, Any], unit: int, run: RunInfo) -> Node:
    """Make the engine's node. Raises ValueError, with one sentence, for what cannot be built,
    MeasureError for what this machine does not allow."""
    scenario = Scenario.model_validate(document)
    check_open_files(files_of_a_unit(scenario), f"unit {unit}")
    pin(scenario.measure, unit, run.units)
    return _engine.LiveNode(live_config(scenario, unit, run))

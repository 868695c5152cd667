"""The board and the alerts of examples/monitoring."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from support.repository import ROOT

FOLDER = ROOT / "examples" / "monitoring"
ALERTS = FOLDER / "alerts.yml"
BOARD = json.loads((FOLDER / "board.json").read_text())


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    return list(group["rules"])


def expressions() -> Iterator[str]:
    """The expressions of the board, with its variables replaced."""
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m").replace("$__range", "30m")
            yield text.replace('run=~"$run"', 'run=~".*"')

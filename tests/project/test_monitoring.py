"""The board and the alerts of examples/monitoring: their form, their metrics, their tests."""

import re
import shutil
import subprocess
from typing import Any

import jsonschema
import pytest

from daqloom.control.run_metrics import METRICS, PREFIX
from support.monitoring import BOARD, FOLDER, expressions, rules
from support.repository import ROOT

PAGE = ROOT / "docs" / "how-to" / "monitor-a-run.md"
PLAIN = {"type": "string", "minLength": 1}
SOURCE = {
    "type": "object",
    "required": ["type", "uid"],
    "properties": {"type": {"const": "prometheus"}, "uid": {"const": "${datasource}"}},
}


def record(**properties: Any) -> dict[str, Any]:
    """A schema of an object with exactly these keys."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def numbers(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


PANEL = record(
    id=numbers(1, 100),
    title=PLAIN,
    description=PLAIN,
    type={"enum": ["stat", "timeseries"]},
    datasource=SOURCE,
    # Grafana's grid has 24 columns.
    gridPos=record(x=numbers(0, 23), y=numbers(0, 200), w=numbers(1, 24), h=numbers(1, 20)),
    fieldConfig=record(
        defaults={"type": "object", "required": ["unit"]}, overrides={"type": "array"}
    ),
    options={"type": "object"},
    targets={
        "type": "array",
        "minItems": 1,
        "items": record(refId=PLAIN, datasource=SOURCE, expr=PLAIN, legendFormat=PLAIN),
    },
)
SCHEMA = record(
    title=PLAIN,
    uid={"type": "string", "pattern": "^[a-z-]{1,40}$"},
    description=PLAIN,
    tags={"type": "array", "items": PLAIN},
    schemaVersion=numbers(36, 41),
    version=numbers(1, 1000),
    editable={"type": "boolean"},
    timezone={"const": "browser"},
    refresh=PLAIN,
    time=record(**{"from": PLAIN, "to": PLAIN}),
    templating=record(list={"type": "array", "minItems": 2}),
    annotations=record(list={"type": "array"}),
    panels={"type": "array", "minItems": 8, "items": PANEL},
)
"""Fields of Grafana's dashboards that the board uses."""


def test_the_board_has_the_form_of_a_board_of_grafana() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(BOARD, SCHEMA)
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        mine = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not mine & cells, panel["title"]
        cells |= mine
    assert max(x for x, _ in cells) == 23


def test_all_metrics_of_the_board_and_the_alerts_exist() -> None:
    exposed = {PREFIX + metric.name: metric.label for metric in METRICS}
    texts = [*expressions(), *(rule["expr"] for rule in rules())]
    texts += [variable["query"] for variable in BOARD["templating"]["list"]]
    for text in texts:
        for name, labels in re.findall(r"\b(daqloom_\w+)(?:\{(.*?)\})?", text):
            assert name in exposed, text
            used = set(re.findall(r"(\w+)=", labels)) - {"run", "scenario"}
            assert used <= {exposed[name]}, text
    names = {name for text in texts for name in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text)}
    functions = {"avg_over_time", "label_values", "predict_linear"}
    assert {name for name in names - functions if not name.startswith(PREFIX)} <= set()


def test_the_page_has_each_alert_and_each_panel() -> None:
    page = PAGE.read_text()
    alerts = [rule["alert"] for rule in rules()]
    assert re.findall(r"^\| `(Daqloom\w+)`", page, re.MULTILINE) == alerts
    assert [panel["title"] for panel in BOARD["panels"] if panel["title"] not in page] == []


@pytest.mark.process
@pytest.mark.skipif(shutil.which("promtool") is None, reason="without promtool")
def test_the_rules_are_valid_and_pass_their_tests() -> None:
    for command in (
        ("check", "rules", "alerts.yml"),
        ("check", "config", "prometheus.yml"),
        ("test", "rules", "alerts-test.yml"),
    ):
        done = subprocess.run(
            ["promtool", *command], cwd=FOLDER, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
    tested = (FOLDER / "alerts-test.yml").read_text()
    for rule in rules():  # each is raised, and is not
        assert re.search(rf"{rule['alert']}, eval_time: \w+, exp_alerts: \[\]", tested)
        assert f"- alertname: {rule['alert']}\n" in tested

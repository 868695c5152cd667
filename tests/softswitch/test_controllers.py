"""The controllers of a switch, which are found by their entry points."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from support.command import output

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")

from daqloom.results.errors import MeasureError
from daqloom.softswitch import controllers, program
from daqloom.softswitch.load import build

PORTS = {"up": {"device": "net_null0"}}


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points of what is installed: none, until a test adds some."""
    found: list[EntryPoint] = []
    monkeypatch.setattr("daqloom.base.plugins.entry_points", lambda group: found)
    return found


@pytest.mark.parametrize(
    "control", [{"openflow": ["punix:/nonexistent/of"]}, {"ovsdb": "unix:/nonexistent/db"}]
)
def test_a_file_with_a_controller_needs_its_package(points, control) -> None:
    [key] = control
    with pytest.raises(MeasureError) as refused:
        program.run(build({"ports": PORTS, "control": control}), print)
    assert str(refused.value) == (
        f"control.{key} needs the Python package daqloom-sdn, which is not installed; pip install "
        "daqloom-sdn"
    )


def test_configuring_a_real_switch_needs_the_package(points, tmp_path: Path) -> None:
    file = tmp_path / "switch.toml"
    file.write_text('[ports.up]\ndevice = "net_null0"\n')
    told = output("topology", "configure", file, "--dry-run", code=1)
    assert "topology configure needs the Python package daqloom-sdn" in told


def test_a_controller_of_another_package_replaces_none(points) -> None:
    points += [
        EntryPoint("openflow", f"{module}.openflow.connection:Controllers", controllers.GROUP)
        for module in ("another", "daqloom_sdn")
    ]
    controller = controllers.controller_type("openflow", "control.openflow")
    assert controller.__module__ == "daqloom_sdn.openflow.connection"
    points.append(EntryPoint("openflow", "daqloom.nowhere:Controllers", controllers.GROUP))
    with pytest.raises(MeasureError, match="daqloom-sdn cannot be loaded: No module named"):
        controllers.controller_type("openflow", "control.openflow")

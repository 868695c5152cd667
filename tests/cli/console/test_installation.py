"""`daqloom --version`, and the installation as `daqloom doctor` lists it."""

import dataclasses
import json
import subprocess
import sys

import pytest

import daqloom
from daqloom.base import extras
from daqloom.base.version import UNINSTALLED, commit
from daqloom.cli.console import installation
from daqloom.results.errors import MeasureError
from daqloom.softswitch import dpdk
from support.command import invoke


def values(text: str) -> dict[str, str]:
    first, *rest = text.splitlines()
    assert first.startswith("daqloom ")
    return dict(line.split(": ", 1) for line in rest)


@pytest.mark.process
def test_version_and_commit_come_with_the_parts_of_the_installation() -> None:
    command = [sys.executable, "-m", "daqloom", "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text == invoke("--version").stdout
    assert text.splitlines()[0] == f"daqloom {daqloom.__version__}"
    found = values(text)
    assert list(found) == ["commit", "transports", "software switch", "adapters", "extras"]
    assert found["commit"] == (commit() or "not known")
    assert found["transports"].startswith("shm, tcp")
    assert {"linux", "software-switch"} <= set(found["adapters"].split(", "))
    listed = {each["check"]: each for each in json.loads(invoke("doctor", "--json").stdout)}
    assert listed["daqloom"]["means"] == f"{daqloom.__version__}, commit {found['commit']}."
    for name in ("software switch", "adapters", "extras"):
        assert listed[name]["means"] == f"{found[name]}."


def test_missing_parts_have_a_remedy_and_fail_where_event_building_needs_them(monkeypatch) -> None:
    def refuse() -> None:
        raise MeasureError("built without DPDK; install it")

    monkeypatch.setattr(dpdk, "require", refuse)
    for missing, state, install in (
        (["adapters", "figures"], "ok", "adapters,figures"),
        (["figures", "live"], "fail", "live"),
    ):
        monkeypatch.setattr(extras, "is_installed", lambda name, all=missing: name not in all)
        found = {finding.check: finding for finding in installation.findings()}
        assert found["extras"].state == state
        alone = {finding.check: finding for finding in installation.findings(builds=False)}
        assert alone["extras"] == dataclasses.replace(found["extras"], state="ok")
        assert found["extras"].fix == f"Run: pip install 'daqloom[{install}]'"
        assert found["extras"].means.endswith(f"; not installed: {', '.join(missing)}.")
        switch = found["software switch"]
        assert (switch.state, switch.means) == ("ok", "no, built without DPDK.")
        assert switch.fix == "Install it."


def test_a_source_tree_is_marked_as_not_installed(monkeypatch) -> None:
    monkeypatch.setattr(installation, "installed_version", lambda: UNINSTALLED)
    monkeypatch.setattr(installation, "commit", lambda: "")
    text = "\n".join(installation.lines())
    assert text.startswith(f"daqloom {UNINSTALLED}\n")
    assert values(text)["commit"] == "not known"
    assert "source tree" in values(text)["installation"]

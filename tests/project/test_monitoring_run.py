"""A real Prometheus with the shipped alerts, which scrapes a real run of three units."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.children import children
from support.measure.small_runs import DAQLOOM, SMALL
from support.monitoring import ALERTS, expressions, rules
from support.prometheus_server import HUNG_S, NEEDS, answer, prometheus, until, value
from support.slurm_cluster import free_ports

pytestmark = NEEDS


@contextmanager
def run_of(scenario: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run with its engine, which ends with the block."""
    command = [*DAQLOOM, "control", str(scenario), "--start", "--log", "json"]
    command += ["--log-dir", str(log.parent)]
    with log.open("wb") as opened:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=opened)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(HUNG_S)


def toml(tables: dict[str, Any]) -> str:
    """The tables of a scenario as TOML."""
    lines = [f"name = {json.dumps(tables['name'])}"]
    for name, table in tables.items():
        if isinstance(table, dict):
            lines.append(f"[{name}]")
            lines += [f"{key} = {json.dumps(given)}" for key, given in table.items()]
    return "\n".join(lines) + "\n"


def states(url: str) -> dict[str, tuple[str, str]]:
    """Health and state of each alert."""
    return {
        rule["name"]: (rule["health"], rule["state"])
        for group in answer(url, "rules")["groups"]
        for rule in group["rules"]
    }


async def test_prometheus_has_the_run_and_all_panels_and_raises_an_alert(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    measure = SMALL["measure"] | {"prometheus_run_port": port, "waiting": "blocking"}
    scenario, log = tmp_path / "small.toml", tmp_path / "log"
    scenario.write_text(toml({**SMALL, "measure": measure | {"fault_timeout": "60 s"}}))
    with prometheus(tmp_path, port, str(ALERTS)) as url, run_of(scenario, log) as process:
        await until(lambda: value(url, 'up{job="daqloom"}'), lambda up: up == 1)
        await until(lambda: value(url, "rate(daqloom_run_events_total[1m])"), bool)
        calm = {rule["alert"]: ("ok", "inactive") for rule in rules()}
        await until(lambda: states(url), lambda found: found == calm)
        for expression in expressions():
            if "disk_free" not in expression:  # no files are written
                assert answer(url, "query", query=expression)["result"], expression
        os.kill(children(process.pid)[0], signal.SIGKILL)
        alert = await until(
            lambda: states(url)["DaqloomUnitLost"], lambda found: found[1] != "inactive"
        )
        assert alert == ("ok", "firing")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert {tuple(entry) for entry in entries} == {
        ("time", "level", "run", "unit", "event", "message")
    }
    (run,) = {entry["run"] for entry in entries} - {None}  # it has none before its first setup
    of_unit = [json.loads(line) for line in (tmp_path / "unit-1.log").read_text().splitlines()]
    assert {(entry["run"], entry["unit"], entry["level"]) for entry in of_unit} == {
        (run, 1, "info")
    }
    orders = [entry["event"] for entry in of_unit]
    assert orders[:4] == ["configure", "prepare", "connect", "start"]
    assert of_unit[3]["message"] == "start: running"
    losses = [entry for entry in entries if entry["unit"] is not None]
    assert [(entry["level"], entry["event"]) for entry in losses] == [("warning", "unit")]
    assert losses[0]["message"].startswith(f"unit {losses[0]['unit']} is lost: ")

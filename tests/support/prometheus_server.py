"""A Prometheus of this machine, for as long as a test lasts, and the metrics of runs on it."""

import asyncio
import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.slurm_cluster import daemon, free_ports

NEEDS = [
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="without prometheus"),
]
"""Marks of a test with Prometheus."""
CONFIGURATION = """
global: {{scrape_interval: 100ms, evaluation_interval: 100ms}}
rule_files: [{rules}]
scrape_configs: [{{job_name: daqloom, static_configs: [{{targets: ["127.0.0.1:{target}"]}}]}}]
"""
POLL_S = 0.05
HUNG_S = 100.0
"""Ends a test that hangs; no test waits for it."""


@contextmanager
def prometheus(folder: Path, target: int, rules: str = "") -> Iterator[str]:
    """Yields the URL of a Prometheus that scrapes a port of this machine."""
    file, (port,) = folder / "prometheus.yml", free_ports(1)
    file.write_text(CONFIGURATION.format(target=target, rules=rules))
    options = {
        "config.file": file,
        "storage.tsdb.path": folder / "storage",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
    with daemon(command, b"Server is ready"):
        yield f"http://127.0.0.1:{port}"


def fetched(url: str, path: str, **query: str) -> str:
    with urllib.request.urlopen(f"{url}{path}?{urllib.parse.urlencode(query)}", timeout=30) as page:
        return page.read().decode()


def answer(url: str, path: str, **query: str) -> Any:
    """The data of an answer of the API."""
    found = json.loads(fetched(url, f"/api/v1/{path}", **query))
    assert found["status"] == "success"
    return found["data"]


def value(url: str, expression: str) -> float | None:
    """The present value of an expression with at most one series."""
    found = answer(url, "query", query=expression)["result"]
    return float(found[0]["value"][1]) if found else None


async def until(read: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    """Reads in a thread until `holds`, and returns what was read."""
    async with asyncio.timeout(HUNG_S):
        while not holds(found := await asyncio.to_thread(read)):
            await asyncio.sleep(POLL_S)
    return found

"""Consoles for tests: states of runs, and the command in a process of its own."""

import contextlib
import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.status import Status, UnitStatus
from support.measure.small_runs import DAQLOOM

HUNG_S = 20.0


def unit(number: int, counters: Mapping[str, float] | None = None, **more: Any) -> UnitStatus:
    given: dict[str, Any] = {
        "unit": number,
        "standing": Standing.AVAILABLE,
        "state": State.RUNNING,
        "member": True,
        "counters": dict(counters or {}),
    }
    return UnitStatus(**given | more)


def status(time_s: float = 1.0, units: tuple[UnitStatus, ...] = (), **more: Any) -> Status:
    given: dict[str, Any] = {
        "run": "r1",
        "scenario": "small",
        "time_s": time_s,
        "phase": Phase.RUNNING,
        "goal": Goal.RUNNING,
        "epoch": 1,
        "first_mep": 0,
        "failure": "",
        "units": units,
        "events": (),
        "counts": {},
    }
    return Status(**given | more)


class Served:
    """A console in a process, with a client that has logged in."""

    def __init__(self, pid: int, lines: list[str]) -> None:
        self.pid = pid
        self.url, self.tokens = "", {}
        for line in lines:
            if found := re.search(r"(operate|view): (http\S+)#token=(\S+)", line):
                self.url, self.tokens[found[1]] = found[2], found[3]
        self.host = urlsplit(self.url).netloc
        self.connections = contextlib.ExitStack()

    def ask(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> http.client.HTTPResponse:
        """Send a request as the page does, with some headers changed."""
        connection = http.client.HTTPConnection(self.host, timeout=HUNG_S)
        self.connections.callback(connection.close)
        usual = {"Host": self.host}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        if body is not None:
            usual |= {"Content-Type": "application/json", "X-Daqloom": "1"}
            usual |= {"Origin": self.url.rstrip("/"), "Content-Length": str(len(content))}
        connection.putrequest(method or ("GET" if body is None else "POST"), path, skip_host=True)
        for name, value in (usual | dict(headers or {})).items():
            connection.putheader(name, value)
        connection.endheaders(None if body is None else content)
        return self.connections.enter_context(connection.getresponse())

    def cookie(self, role: str) -> dict[str, str]:
        """Log in, and return the header with the cookie."""
        answer = self.ask("/api/login", {"token": self.tokens[role]})
        assert answer.status == 200, answer.read()
        given = answer.headers["set-cookie"]
        assert "HttpOnly" in given
        assert "samesite=strict" in given.lower()
        return {"Cookie": given.partition(";")[0]}


@contextlib.contextmanager
def served(*arguments: str, runtime: Path) -> Iterator[Served]:
    """Start `daqloom console` on a free port, with `runtime` as the folder of the user's runs."""
    command = [*DAQLOOM, "console", *arguments, "--port", "0"]
    with process(command, runtime) as started:
        assert started.stderr
        found = Served(started.pid, [started.stderr.readline() for _ in range(3)])
        with found.connections:
            yield found


@contextlib.contextmanager
def controlled(*arguments: str, runtime: Path) -> Iterator[None]:
    """Start `daqloom control`, and end the run."""
    with process([*DAQLOOM, "control", *arguments], runtime) as started:
        assert started.stderr
        assert started.stdin
        while "listens at" not in started.stderr.readline():
            assert started.poll() is None
        yield
        started.stdin.write("exit\n")
        started.stdin.flush()
        started.wait(HUNG_S)


@contextlib.contextmanager
def process(command: list[str], runtime: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a command of daqloom, and end it with its children."""
    runtime.mkdir(mode=0o700, exist_ok=True)
    pipe = subprocess.PIPE
    state = str(runtime / "state")
    environment = os.environ | {"XDG_RUNTIME_DIR": str(runtime), "XDG_STATE_HOME": state}
    started = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
    )
    try:
        yield started
    finally:
        started.terminate()
        started.communicate(timeout=HUNG_S)

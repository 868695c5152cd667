"""The command that serves daqloom's functions to assistants and editors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from daqloom.base import lazy
from daqloom.base.words import reason_of
from daqloom.cli.console.terminal import note
from daqloom.cli.options import argument, option
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    import socket

    from daqloom.cli.assistant import server

LOOPBACK = "127.0.0.1"


def mcp(
    folder: Annotated[
        Path | None,
        argument("FOLDER", "Folder whose files may be read; by default none."),
    ] = None,
    http: Annotated[
        int | None, option("PORT", "Serve HTTP, at /mcp, instead of standard input.", min=1)
    ] = None,
    host: Annotated[str, option("ADDRESS", "Address for --http.")] = LOOPBACK,
    cpu_time: Annotated[int, option("S", "Limit on the CPU time of a request (s).", min=1)] = 60,
) -> None:
    """Serve daqloom's functions to an assistant or an editor, by the Model Context Protocol.

    The tools are: scenarios, explain, validate, analyse, simulate and read_result. Each request
    runs in a process of its own, with limits on CPU time and memory. Scenarios and results are read
    only below FOLDER, and nothing is written. The client starts the command and talks to it over
    standard input and output; with --http, clients of this machine connect to a running server.

    \b
    Examples:
      daqloom mcp ~/daqloom-files
      daqloom mcp ~/daqloom-files --http 8750 --cpu-time 600
    """
    if folder and not folder.is_dir():
        raise ScenarioError(f"{folder} is not a folder; make it, or give another")
    served = server.make_server(folder, cpu_time)
    if http is None:
        if sys.stdin.isatty():
            note("waiting for a client on standard input; an assistant starts this command itself")
        served.run()
        return
    try:
        socket.create_server((host, http)).close()
    except OSError as error:
        raise ScenarioError(
            f"--http {http}: cannot listen on {host}: {reason_of(error)}; give another port or "
            "--host"
        ) from None
    if host != LOOPBACK:
        reads = f" and read below {folder}" if folder else ""
        note(f"everybody who reaches {host} port {http} may compute here{reads}")
    note(f"serving http://{host}:{http}/mcp; Ctrl-C ends the server")
    served.run("streamable-http", host=host, port=http, stateless_http=True)

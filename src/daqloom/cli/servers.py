"""The commands that serve daqloom's functions: to assistants and editors, and to browsers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from daqloom.base import extras, lazy
from daqloom.base.words import reason_of
from daqloom.cli.console.terminal import note
from daqloom.cli.measure import Address, Certificates
from daqloom.cli.options import argument, option
from daqloom.scenario.errors import ScenarioError

with lazy.imports():
    import socket

    from daqloom.cli.assistant import server as assistant_server
    from daqloom.console import guard
    from daqloom.console import server as console_server
    from daqloom.control import status as control_status
    from daqloom.control.calls import connection, operator
    from daqloom.machine import addresses
    from daqloom.softswitch import status as switch_status

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
    served = assistant_server.make_server(folder, cpu_time)
    if http is None:
        if sys.stdin.isatty():
            note("waiting for a client on standard input; an assistant starts this command itself")
        served.run()
        return
    _listen(host, http, "--http").close()
    if host != LOOPBACK:
        reads = f" and read below {folder}" if folder else ""
        note(f"everybody who reaches {host} port {http} may compute here{reads}")
    note(f"serving http://{host}:{http}/mcp; Ctrl-C ends the server")
    served.run("streamable-http", host=host, port=http, stateless_http=True)


def console(
    folder: Annotated[
        Path | None,
        argument("FOLDER", "Folder with scenarios, studies and a store; by default none is read."),
    ] = None,
    address: Address = None,
    certificates: Certificates = None,
    host: Annotated[str, option("ADDRESS", "Address to listen at.")] = LOOPBACK,
    port: Annotated[int, option("PORT", "Port to listen at; 0: a free one.", min=0)] = 8760,
    name: Annotated[
        list[str] | None,
        option("NAME", "Further name under which browsers reach the server; may be repeated."),
    ] = None,
    token_file: Annotated[
        Path | None,
        option(
            "FILE", "File with lines `operate TOKEN` and `view TOKEN`; by default tokens are new."
        ),
    ] = None,
    tls: Annotated[
        Path | None,
        option("FOLDER", "Folder from `daqloom control certificates`, for HTTPS."),
    ] = None,
    cpu_time: Annotated[int, option("S", "Limit on the CPU time of a task (s).", min=1)] = 60,
) -> None:
    """Serve a page for browsers: watch and steer a run, look at systems and studies.

    The page has four parts: the run of a run control, the topology of a scenario or an import, the
    studies of FOLDER, and an editor for scenarios with closed forms and simulations. The printed
    link contains a token: the role `operate` may steer the run and simulate, `view` may look. With
    --tls, a client certificate of an operator replaces the token. Addresses other than loopback
    require --tls or --token-file. Analyses and simulations run in child processes with limits.

    \b
    Examples:
      daqloom console
      daqloom console ~/daqloom-files --address 127.0.0.1:41537
      daqloom console --host daq1.site.org --tls certs --token-file tokens
    """
    extras.require("console")
    extras.require("live")
    if folder and not folder.is_dir():
        raise ScenarioError(f"{folder} is not a folder; make it, or give another")
    if not (addresses.is_loopback(host) or tls or token_file):
        raise ScenarioError(
            f"--host {host}: other machines reach this address; give --tls, or --token-file behind "
            "a proxy with TLS"
        )
    if tls:
        connection.read_certificates(tls, "control")
    tokens = guard.read_tokens(token_file) if token_file else guard.make_tokens()
    opened = _listen(host, port, "--port")
    port = opened.getsockname()[1]
    listener = console_server.Listener(host, port, tokens, tuple(name or ()), tls)
    sources = console_server.Sources(
        lambda request: control_status.steer(request, address, certificates),
        _switch if address is None else None,
        folder,
        cpu_time,
    )
    place = f"{'https' if tls else 'http'}://{addresses.join_address(host, port)}/"
    for role, token in tokens.items():
        secret = "" if token_file else f"#token={token}"
        note(f"{role}: {place}{secret}")
    note("serving; Ctrl-C ends the server")
    console_server.server(sources, listener).run([opened])


def _listen(host: str, port: int, option: str) -> socket.socket:
    """Return a socket that listens. Raises ScenarioError, which names the option of the port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ScenarioError(
            f"{option} {port}: cannot listen on {host}: {reason_of(error)}; give another port or "
            "--host"
        ) from None


def _switch() -> switch_status.SwitchStatus:
    """Return the state of this user's only software switch on this machine. Raises MeasureError."""
    answer = operator.ask(switch_status.Ask().encode(), None, kind=switch_status.SWITCH)
    return switch_status.SwitchStatus.model_validate_json(answer)

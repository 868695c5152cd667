"""Commands of daqloom, run in the process of the test."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from typer.testing import CliRunner

from daqloom.cli.console import BAD_INPUT
from daqloom.cli.main import app


class Commands(NamedTuple):
    """Ways to run commands that begin with the same words; arguments are written as text."""

    invoke: Callable[..., Any]
    """Returns the result of the runner."""
    run: Callable[..., str]
    """Returns what a command with the exit code `code`, by default 0, prints anywhere."""
    printed: Callable[..., str]
    """Returns the standard output of a command that succeeds."""
    record: Callable[..., dict[str, Any]]
    """Returns the object that it prints with --json."""
    refused: Callable[..., str]
    """Returns the one sentence that bad input is answered with."""


def commands(*words: str, silent: bool = False) -> Commands:
    """`silent`: a command that succeeds prints nothing on standard error."""

    def invoke(*arguments: object) -> Any:
        return CliRunner().invoke(app, [*words, *map(str, arguments)])

    def run(*arguments: object, code: int = 0) -> str:
        done = invoke(*arguments)
        assert done.exit_code == code, done.output
        return str(done.output)

    def printed(*arguments: object) -> str:
        done = invoke(*arguments)
        assert done.exit_code == 0, done.output
        assert not (silent and done.stderr)
        return str(done.stdout)

    def record(*arguments: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(printed(*arguments, "--json"))
        return found

    def refused(*arguments: object) -> str:
        done = invoke(*arguments)
        assert done.exit_code == BAD_INPUT, done.output
        assert done.stdout == ""
        [sentence] = done.stderr.splitlines()
        return str(sentence)

    return Commands(invoke, run, printed, record, refused)

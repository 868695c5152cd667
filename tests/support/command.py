"""The command line, called in this process: its result, output, record and refusal."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from click.testing import Result
from typer.testing import CliRunner

from daqloom.cli.console.terminal import BAD_INPUT
from daqloom.cli.main import app


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def output(*words: object, code: int = 0) -> str:
    """Standard output and standard error, interleaved, of a command with this exit code."""
    done = invoke(*words)
    assert done.exit_code == code, done.output
    return done.output


def printed(*words: object, silent: bool = False) -> str:
    """Standard output of a command that succeeds and, if `silent`, prints nothing else."""
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    assert not (silent and done.stderr)
    return done.stdout


def record(*words: object, silent: bool = False) -> dict:
    """The JSON object of a command that succeeds."""
    return json.loads(printed(*words, "--json", silent=silent))


def refusal(*words: object, code: int = BAD_INPUT) -> str:
    """The one sentence of a command that fails, which prints nothing else."""
    done = invoke(*words)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    [sentence] = done.stderr.splitlines()
    return sentence


class Commands(NamedTuple):
    """The functions of this module for commands that begin with the same words."""

    invoke: Callable[..., Any]
    run: Callable[..., str]
    printed: Callable[..., str]
    record: Callable[..., dict]
    refused: Callable[..., str]


def commands(*words: str, silent: bool = False) -> Commands:
    return Commands(
        partial(invoke, *words),
        partial(output, *words),
        partial(printed, *words, silent=silent),
        partial(record, *words, silent=silent),
        partial(refusal, *words),
    )

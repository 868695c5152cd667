"""The command line, called in this process: its result, output, record and refusal."""

import json

from click.testing import Result
from typer.testing import CliRunner

from daqloom.cli.console import BAD_INPUT
from daqloom.cli.main import app


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def output(*words: object, code: int = 0) -> str:
    """Standard output and standard error, interleaved, of a command with this exit code."""
    done = invoke(*words)
    assert done.exit_code == code, done.output
    return done.output


def printed(*words: object) -> str:
    """Standard output of a command that succeeds."""
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def record(*words: object) -> dict:
    """The JSON object of a command that succeeds."""
    return json.loads(printed(*words, "--json"))


def refusal(*words: object, code: int = BAD_INPUT) -> str:
    """The one sentence of a command that fails, which prints nothing else."""
    done = invoke(*words)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    [sentence] = done.stderr.splitlines()
    return sentence

"""The program of a unit: it finds its number and token, and ends with its parent."""

import os
from collections.abc import Mapping
from pathlib import Path

from daqloom.base.words import reason_of
from daqloom.control.calls.connection import read_certificates
from daqloom.control.protocol.messages import MOST_UNITS
from daqloom.control.unit import MakeNode, serve
from daqloom.machine.launch import TOKEN
from daqloom.machine.lifeline import end_with_input, end_with_parent
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import open_text

TOKEN_BYTES = 16
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
"""Environment variables with the number of a process: of Open MPI, of MPICH, and of srun, which
also sets its own for a script that runs mpirun."""


def run_unit(
    control: str,
    make_node: MakeNode,
    *,
    unit: int | None = None,
    certificates: Path | None = None,
    token_file: Path | None = None,
    parent: int | None = None,
    while_input: bool = False,
    patience_s: float = 10.0,
    address_file: Path | None = None,
    stays: bool = False,
) -> None:
    """Serve the run control at `control` until it orders to exit. Raises MeasureError. `parent`: a
    process with which this one ends. `while_input`: it ends when standard input does. `stays`:
    see `serve`."""
    if parent is not None:
        end_with_parent(parent)
    token = read_token(os.environ, token_file)
    if while_input:
        end_with_input()
    serve(
        control,
        token=token,
        make_node=make_node,
        number=unit if unit is not None else rank(os.environ),
        certificates=read_certificates(certificates, "unit") if certificates else None,
        patience_s=patience_s,
        address_file=address_file,
        stays=stays,
    )


def rank(environment: Mapping[str, str]) -> int | None:
    """Return the unit's number, if mpirun or srun has given it one. Raises MeasureError."""
    name = next((name for name in RANKS if name in environment), None)
    if name is None:
        return None
    text = environment[name]
    if not text.isascii() or not text.isdigit() or int(text) >= MOST_UNITS:
        raise MeasureError(f"{name} = {text[:20]} is not the number of a unit; give it with --unit")
    return int(text)


def read_token(environment: Mapping[str, str], file: Path | None) -> bytes:
    """Read the token from a file, the environment, or the first line of standard input; never from
    an argument, which every user of the machine could read. Raises MeasureError."""
    if file is not None:
        try:
            with open_text(file) as opened:
                text = opened.read(200).decode(errors="replace")
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else "its name is not valid"
            raise MeasureError(f"--token-file {file} cannot be read: {reason}") from None
    else:
        text = environment.get(TOKEN) or _first_line()
    try:
        token = bytes.fromhex(text.strip())
    except ValueError:
        token = b""
    if len(token) != TOKEN_BYTES:
        raise MeasureError(
            f"the run's token is not {2 * TOKEN_BYTES} hexadecimal digits; give it in {TOKEN}, "
            "--token-file or the first line of standard input"
        )
    return token


def _first_line() -> str:
    """Read the first line unbuffered, so that the rest stays in the file."""
    line = b""
    while len(line) < 200 and (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode(errors="replace")

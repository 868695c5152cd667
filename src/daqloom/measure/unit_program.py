"""The program of a unit: where its number and token come from, and what it ends with."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from daqloom.measure.connection import read_certificates
from daqloom.measure.errors import MeasureError
from daqloom.measure.messages import MOST_UNITS
from daqloom.measure.node import MakeNode
from daqloom.measure.unit import serve

TOKEN = "DAQLOOM_TOKEN"
"""In the environment: the run's token, as hexadecimal digits."""
TOKEN_BYTES = 16
RANK = "SLURM_PROCID"
"""In the environment of a task of srun: its number."""
_PR_SET_PDEATHSIG = 1


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
) -> None:
    """Serves the run control at `control` until that says exit. Raises MeasureError.

    `parent`: a process with which this one ends. `while_input`: it ends when standard input does.
    """
    if parent is not None:
        end_with(parent)
    token = read_token(os.environ, token_file)
    if while_input:
        threading.Thread(target=_end_with_input, daemon=True).start()
    serve(
        control,
        token=token,
        make_node=make_node,
        number=unit if unit is not None else rank(os.environ),
        certificates=read_certificates(certificates, "unit") if certificates else None,
        patience_s=patience_s,
    )


def rank(environment: Mapping[str, str]) -> int | None:
    """The unit's number, if srun has given it one. Raises MeasureError."""
    text = environment.get(RANK)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) >= MOST_UNITS:
        raise MeasureError(f"{RANK} = {text[:20]} is no number of a unit; give it with --unit")
    return int(text)


def read_token(environment: Mapping[str, str], file: Path | None) -> bytes:
    """From a file, the environment, or the first line of standard input; never an argument, which
    everybody on the machine could read. Raises MeasureError."""
    if file is not None:
        try:
            with file.open() as opened:
                text = opened.read(200)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "no text"
            raise MeasureError(f"--token-file {file} cannot be read: {reason.lower()}") from None
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


def end_with(parent: int) -> None:
    """The kernel kills this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended already
        sys.exit(0)


def _first_line() -> str:
    """Unbuffered: the rest stays where it is."""
    line = b""
    while len(line) < 200 and (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line.decode(errors="replace")


def _end_with_input() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)

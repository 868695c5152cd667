"""Programs that configure a device, run locally or through a command such as ssh."""

import shlex
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from daqloom.base.words import reason_of
from daqloom.device.adapter import AdapterError, AdapterOptions
from daqloom.machine.programs import TooLongError, run_program

MOST_ANSWER_BYTES = 16 << 20


class ToolOptions(AdapterOptions):
    """Keys of an adapter that runs programs."""

    through: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = Field(
        default=(), max_length=64, strict=False
    )
    """Beginning of each command, such as ["ssh", "-o", "BatchMode=yes", "tor1"]; none: programs run
    on this machine. It runs with the rights of the user who measures."""


def line(options: ToolOptions, command: Sequence[str]) -> str:
    """Return the command line that `answer` runs, as text."""
    return shlex.join([*options.through, *command])


def answer(options: ToolOptions, command: Sequence[str], text: str = "", *, what: str) -> str:
    """Return the output of a program. Raises AdapterError, whose message begins with `what`."""
    whole = [*options.through, *command]
    shown = f"{what}: `{' '.join(whole)[:200]}`"
    try:
        done = run_program(whole, text.encode(), options.timeout, MOST_ANSWER_BYTES)
    except TimeoutError:
        raise AdapterError(f"{shown} has not ended within {options.timeout:g} s") from None
    except TooLongError:
        raise AdapterError(f"{shown} prints more than {MOST_ANSWER_BYTES >> 20} MiB") from None
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "its name is not valid"
        raise AdapterError(f"{what}: {whole[0][:100]}: {reason}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise AdapterError(f"{shown} has failed: {lines[0][:300]}")
    return done.stdout.decode(errors="replace")

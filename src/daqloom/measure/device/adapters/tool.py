"""Programs that speak to a device: on this machine, or by way of another command such as ssh."""

import subprocess
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from daqloom.measure.device.adapter import AdapterError, AdapterOptions

MOST_ANSWER_BYTES = 16 << 20


class ToolOptions(AdapterOptions):
    """Keys of an adapter that runs programs."""

    through: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = Field(
        default=(), max_length=64, strict=False
    )
    """Beginning of each command, such as ["ssh", "-o", "BatchMode=yes", "tor1"]; none: programs run
    on this machine."""


def answer(options: ToolOptions, command: Sequence[str], text: str = "", *, what: str) -> str:
    """Return what a program prints. Raises AdapterError, whose sentence begins with `what`."""
    whole = [*options.through, *command]
    try:
        done = subprocess.run(
            whole, input=text.encode(), capture_output=True, timeout=options.timeout
        )
    except subprocess.TimeoutExpired:
        raise AdapterError(
            f"{what}: `{' '.join(whole)[:200]}` has not ended within {options.timeout:g} s"
        ) from None
    except OSError as error:
        raise AdapterError(f"{what}: {whole[0][:100]}: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise AdapterError(f"{what}: `{' '.join(whole)[:200]}` has failed: {lines[0][:300]}")
    if len(done.stdout) > MOST_ANSWER_BYTES:
        raise AdapterError(f"{what}: `{' '.join(whole)[:200]}` prints more than 16 MiB")
    return done.stdout.decode(errors="replace")

"""A study as a Slurm job array: each element computes a share of the tasks; all use one store."""

import math
import re
import shlex
import sys
from pathlib import Path

from daqloom.study import StudyError

MOST_ELEMENTS = 100_000
MOST_HOURS = 365 * 24


def job_array(
    file: Path, store: Path, *, elements: int, quick: bool, hours: float, memory_mb: int
) -> str:
    """Return the text of a batch script for `sbatch`. Paths are made absolute, as nodes share the
    file system. A second submission computes only missing results. Raises StudyError."""
    if not 1 <= elements <= MOST_ELEMENTS:
        raise StudyError(f"--elements {elements}: expected 1 to {MOST_ELEMENTS}")
    if not 0 < hours <= MOST_HOURS:
        raise StudyError(f"--hours {hours:g}: expected more than 0, and at most {MOST_HOURS}")
    if memory_mb < 1:
        raise StudyError(f"--memory {memory_mb}: expected megabytes, such as 1000")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", file.stem)[:40]
    command = shlex.join([sys.executable, "-m", "daqloom", "study", "run", str(file.absolute())])
    options = f"--store {shlex.quote(str(store.absolute()))} --workers 1{' --quick' * quick}"
    return f"""\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{elements - 1}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --mem={memory_mb}M
#SBATCH --time={math.ceil(hours * 60)}
#SBATCH --open-mode=append
# A killed job loses only the run in progress; sbatch this file again to continue.
exec {command} {options} --part "$SLURM_ARRAY_TASK_ID/{elements}"
"""

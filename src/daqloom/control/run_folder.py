"""Folder for the output of a run's units: below TMPDIR unless named, and removed at the end of the
run control, or by the next run."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from daqloom.base.claims import claimed_folder
from daqloom.base.output import OutputError
from daqloom.base.words import reason_of
from daqloom.results.errors import MeasureError

KEPT = "daqloom-run-"
"""Prefix of the folder of a failed run, which is kept."""


@contextmanager
def run_folder(log_dir: Path | None) -> Iterator[Path]:
    """Yield the folder of units' output; a temporary one is kept only after a failure. Raises
    OutputError."""
    with ExitStack() as stack:
        try:
            if log_dir is None:
                folder = stack.enter_context(claimed_folder())
            else:
                log_dir.mkdir(parents=True, exist_ok=True)
                folder = log_dir
        except OSError as error:
            reason = f"cannot write logs: {reason_of(error)}; name another folder"
            raise OutputError(reason) from None
        try:
            yield folder
        except MeasureError as error:
            if not any(folder.iterdir()):  # it failed before there were units
                raise
            kept = folder
            if log_dir is None:
                kept = Path(tempfile.mkdtemp(prefix=KEPT, dir=folder.parent))
                folder.rename(kept)
            raise MeasureError(f"{error}; the output of the units is in {kept}") from None

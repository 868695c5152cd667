"""Sentences of expected failures."""

from daqloom.base.extras import MissingExtraError
from daqloom.base.output import OutputError
from daqloom.base.words import printable
from daqloom.faults import FaultsError
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.simulate import SimulationError
from daqloom.study import StudyFailure

FAILED = 1
BAD_INPUT = 2


def failure_of(error: Exception) -> tuple[str, int] | None:
    """Return the sentence and the exit code of an expected failure, None for any other error."""
    if isinstance(error, ScenarioError | FaultsError):
        return "\n".join([str(error), *getattr(error, "__notes__", ())]), BAD_INPUT
    if isinstance(
        error, SimulationError | MeasureError | StudyFailure | OutputError | MissingExtraError
    ):
        return str(error), FAILED
    if isinstance(error, MemoryError):
        return "out of memory; use a smaller scenario or a shorter run.duration", FAILED
    return None


def escape(text: str) -> str:
    """Return the text with control characters escaped, except line ends."""
    return "\n".join(map(printable, text.split("\n")))

"""Studies: sweep, search, repeat, store, fit, compare."""

from daqloom.scenario import ScenarioError


class StudyError(ScenarioError):
    """Error in a study, a condition or a store. The message is one sentence."""


class StudyFailure(RuntimeError):  # noqa: N818 - a failure of machines, no error of the user
    """Failure of a machine during a study, not a user error. The message is one sentence."""


class StoreFailure(StudyFailure):
    """Failure of a store's disk, which is full or broken."""


class SchedulerFailure(StudyFailure):
    """Loss of a Dask scheduler that had answered before."""

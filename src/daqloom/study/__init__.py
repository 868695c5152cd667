"""Studies: sweep, search, repeat, store, fit, compare."""

from daqloom.scenario import ScenarioError


class StudyError(ScenarioError):
    """A study, a condition or a store that cannot be used. The message is one sentence."""


class StudyFailure(RuntimeError):  # noqa: N818 - a failure of machines, no error of the user
    """Something that went well until a machine let it down. The message is one sentence."""


class StoreFailure(StudyFailure):
    """A store that could be used until the disk filled or broke."""


class SchedulerFailure(StudyFailure):
    """A Dask scheduler that was there and no longer is."""

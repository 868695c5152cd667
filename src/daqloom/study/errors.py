"""What a user of studies can get wrong, and what can fail while a study runs."""

from daqloom.scenario import ScenarioError


class StudyError(ScenarioError):
    """A study, a condition or a store that cannot be used. The message is one sentence."""


class StoreFailure(RuntimeError):  # noqa: N818 - a failure of the machine, no error of the user
    """A store that could be used until the disk filled or broke. The message is one sentence."""

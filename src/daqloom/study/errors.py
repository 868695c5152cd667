"""What a user of studies can get wrong."""

from daqloom.scenario import ScenarioError


class StudyError(ScenarioError):
    """A study, a condition or a store that cannot be used. The message is one sentence."""

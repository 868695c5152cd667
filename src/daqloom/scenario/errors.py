"""The one error a scenario raises for a person's mistake."""


class ScenarioError(Exception):
    """A scenario that cannot be used; the text is one sentence: what, where, what was expected."""

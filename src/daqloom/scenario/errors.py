"""The error of a scenario that its user can correct."""

from daqloom.words import printable


def value_error(first: str, *others: str) -> ValueError:
    """Return an error of a validator on several mistakes: all but the first one are its notes."""
    error = ValueError(first)
    for other in others:
        error.add_note(other)
    return error


class ScenarioError(Exception):
    """Input that cannot be used; the text is one sentence: what, where, what was expected. The text
    is one line of printable characters, whatever the input held; each note of the error is such a
    line on another mistake."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence))

"""The error of a scenario that its user can correct."""

from daqloom.base.words import counted, printable

MOST_MISTAKES = 10
"""Most mistakes of a file that are listed."""


class ScenarioError(Exception):
    """Input that cannot be used. The text is one sentence, on one line of printable characters
    whatever the input was: what, where, what was expected. Each note is such a line on another
    mistake, up to MOST_MISTAKES in all."""

    def __init__(self, sentence: str, *others: str) -> None:
        super().__init__(printable(sentence))
        self.mistakes = (sentence, *others)
        for other in others[: MOST_MISTAKES - 1]:
            self.add_note(printable(other))
        if more := len(others[MOST_MISTAKES - 1 :]):
            self.add_note(f"and {counted(more, 'other mistake')}")

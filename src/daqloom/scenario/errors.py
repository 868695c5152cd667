"""The error for mistakes in a scenario."""

from daqloom.base.words import plural, printable

MOST_MISTAKES = 10
"""Most mistakes of a file that are listed."""


class ScenarioError(Exception):
    """Error for invalid input. The text is one sentence on one line of printable characters: what
    is wrong, where, and what was expected. Each note is a line on a further mistake; at most
    MOST_MISTAKES are listed."""

    def __init__(self, sentence: str, *others: str) -> None:
        super().__init__(printable(sentence))
        self.mistakes = (sentence, *others)
        for other in others[: MOST_MISTAKES - 1]:
            self.add_note(printable(other))
        if more := len(others[MOST_MISTAKES - 1 :]):
            self.add_note(f"and {plural(more, 'other mistake')}")

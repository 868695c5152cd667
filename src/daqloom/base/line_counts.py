"""Counts of used, ignored and malformed lines in a text file; mostly malformed files are refused.
Readers of text files from other programs iterate over `CountedLines` and count each line once.
`CountedLines.check` then refuses a file if the reader understood none or less than half of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from daqloom.base.words import plural, printable

USED, IGNORED, MALFORMED = "used", "ignored", "malformed"
LONGEST_QUOTE = 100
"""Maximum characters that a message quotes from a line."""


FileCounts = Mapping[str, Mapping[str, int]]
"""For each file name, the number of used, ignored and malformed lines or entries."""


class NotUnderstoodError(ValueError):
    """Error for a file that a reader does not understand; the message is one sentence."""


class CountedLines(Iterator[str]):
    """Lines of one file, numbered from 1, with counts of used, ignored and malformed lines."""

    def __init__(self, where: str, lines: Iterable[str], subject: str, kinds: str) -> None:
        """`where`: the file's name. `subject`: the data that the reader extracts, such as "link
        changes". `kinds`: the supported formats. All three appear in the error message."""
        self.number = 0
        self.counts: Counter[str] = Counter()
        self._where, self._subject, self._kinds = where, subject, kinds
        self._lines = iter(lines)
        self._outside = 0
        self._blank = 0
        self.first_malformed = ""
        """Number, text and expected form of the first malformed line; empty without one."""

    def __iter__(self) -> CountedLines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        return line

    def use(self, number: int = 1) -> None:
        """Count lines that the reader used."""
        self.counts[USED] += number

    def ignore(self, number: int = 1) -> None:
        """Count valid lines of the format that the reader does not need."""
        self.counts[IGNORED] += number

    def count_malformed(self, line: str, expected: str = "", number: int | None = None) -> None:
        """Count a malformed line about the subject; `number`: of its line, if not the current
        one."""
        self.counts[MALFORMED] += 1
        if not self.first_malformed:
            quote = printable(line.strip()[:LONGEST_QUOTE])
            end = f"; expected {expected}" if expected else ""
            self.first_malformed = f'line {number or self.number}: "{quote}"{end}'

    def outside(self, line: str, expected: str = "") -> None:
        """Count a line that does not have the file's format; a blank line counts as ignored."""
        if not line.strip():
            self._blank += 1
            return self.ignore()
        self.count_malformed(line, expected)
        self._outside += 1

    def check(self) -> None:
        """Raise NotUnderstoodError if none or less than half of the lines were understood."""
        used, ignored, malformed = (self.counts[fate] for fate in (USED, IGNORED, MALFORMED))
        inside, understood = malformed - self._outside, used + ignored - self._blank
        if understood and inside <= used and self._outside <= understood:
            return
        if inside > used:
            share = f"{inside:,} of {plural(inside + used, 'line')} about {self._subject}"
        else:
            share = f"{malformed:,} of {plural(used + ignored + malformed, 'line')}"
        first = f", the first is {self.first_malformed}" if self.first_malformed else ""
        what = f"{self._where}: {share} were not understood{first}"
        raise NotUnderstoodError(f"{what}; supported are {self._kinds}")


def in_words(counts: Mapping[str, int], unit: str = "line", units: str = "") -> str:
    """`12 lines used, 3 ignored, 1 malformed`."""
    return (
        f"{plural(counts.get(USED, 0), unit, units)} used, {counts.get(IGNORED, 0):,} ignored, "
        f"{counts.get(MALFORMED, 0):,} malformed"
    )

"""Line counts of a text file: used, ignored, malformed; a file that was not understood is refused.

Every reader of a foreign text file iterates over `CountedLines` and assigns each line one fate.
`CountedLines.check` then refuses a file of which nothing, or less than half, was understood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from daqloom.base.words import counted, printable

USED, IGNORED, MALFORMED = "used", "ignored", "malformed"
LONGEST_QUOTE = 100
"""Characters of a line in a message."""


FileCounts = Mapping[str, Mapping[str, int]]
"""By the name of a file: its lines, or the entries of a file without lines, by fate."""


class NotUnderstoodError(ValueError):
    """Error for a file that no reader understood, in one sentence."""


class CountedLines(Iterator[str]):
    """Lines of one file, numbered from 1, and the number of lines by fate."""

    def __init__(self, where: str, lines: Iterable[str], subject: str, kinds: str) -> None:
        """`where`: the file's name. `subject`: what the reader looks for, such as "link changes".
        `kinds`: the formats that are known. Both appear in the message of a refusal."""
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
        """Count lines that the format contains in normal operation and the reader does not need."""
        self.counts[IGNORED] += number

    def malformed(self, line: str, expected: str = "", number: int | None = None) -> None:
        """Count a line about the subject that was not understood; `number`: of an earlier one."""
        self.counts[MALFORMED] += 1
        if not self.first_malformed:
            quote = printable(line.strip()[:LONGEST_QUOTE])
            end = f"; expected {expected}" if expected else ""
            self.first_malformed = f'line {number or self.number}: "{quote}"{end}'

    def outside(self, line: str, expected: str = "") -> None:
        """Count a line that is not of the format; blank lines are ignored."""
        if not line.strip():
            self._blank += 1
            return self.ignore()
        self.malformed(line, expected)
        self._outside += 1

    def check(self) -> None:
        """Raise NotUnderstoodError where less than half of the lines, or none, was understood."""
        used, ignored, malformed = (self.counts[fate] for fate in (USED, IGNORED, MALFORMED))
        inside, understood = malformed - self._outside, used + ignored - self._blank
        if understood and inside <= used and self._outside <= understood:
            return
        if inside > used:
            share = f"{inside:,} of {counted(inside + used, 'line')} about {self._subject}"
        else:
            share = f"{malformed:,} of {counted(used + ignored + malformed, 'line')}"
        first = f", the first is {self.first_malformed}" if self.first_malformed else ""
        what = f"{self._where}: {share} were not understood{first}"
        raise NotUnderstoodError(f"{what}; known are {self._kinds}")


def in_words(counts: Mapping[str, int], unit: str = "line", units: str = "") -> str:
    """`12 lines used, 3 ignored, 1 malformed`."""
    return (
        f"{counted(counts.get(USED, 0), unit, units)} used, {counts.get(IGNORED, 0):,} ignored, "
        f"{counts.get(MALFORMED, 0):,} malformed"
    )

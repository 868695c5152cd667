"""Reading of files that a scenario names: size histograms, arrival traces, latencies. The files are
untrusted: their length is limited, and each line is checked. Errors are ValueErrors that name the
file and the line."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, ValidationInfo

from daqloom.scenario.files import read_text

LARGEST_FILE_BYTES = 64 << 20
MOST_HISTOGRAM_LINES = 1_000_000
LARGEST_SIZE_BYTES = 10**12
LARGEST_WEIGHT = 1e18
LATEST_ARRIVAL_S = 1e6
MOST_LATENCIES = 1_000_000
LONGEST_LATENCY_US = 1e6


def folder_of(info: Any) -> Path:
    """Return the folder for relative paths: that of the scenario file, else the working folder."""
    context = info.context or {}
    folder: Path = context.get("folder") or Path.cwd()
    return folder


def resolve(name: str, folder: Path) -> Path:
    """Return the absolute path of a file that a scenario in `folder` names."""
    return (folder / name).absolute()


def _absolute(name: str, info: ValidationInfo) -> str:
    return str(resolve(name, folder_of(info))) if name else ""


FileName = Annotated[str, Field(max_length=4096), AfterValidator(_absolute)]
"""Type of a key that names a file; the validated value is an absolute path."""


class Line(NamedTuple):
    """A line of a file."""

    path: Path
    number: int
    text: str

    def error(self, expected: str) -> ValueError:
        """Return the error for this line, with the expected content."""
        return ValueError(f'{self.path}, line {self.number} has "{self.text[:40]}": {expected}')


def digest(*content: array[Any] | bytes) -> str:
    """Return the SHA-256 of data read from files, "" without data."""
    found = hashlib.sha256()
    for part in content:
        found.update(bytes(part))
    return found.hexdigest() if content else ""


def histogram(path: Path) -> tuple[array[int], array[float]]:
    """Read sizes (B) and weights from a file. A line has a size and a weight, or both edges of a
    bin and a weight; the size of a bin is its middle. Columns are separated by blanks, commas or
    semicolons. A header line may name the unit of sizes, such as `size_kB,count`."""
    sizes, weights = array("q"), array("d")
    bins: list[tuple[float, float, Line]] = []
    texts = read_text(path, LARGEST_FILE_BYTES).splitlines()
    lines = _lines(path, texts)
    unit_bytes = _commented_unit(path, texts[: lines[0].number - 1]) if lines else None
    if lines and (head := _histogram_head(lines[0])):
        unit_bytes, lines = head, lines[1:]
    columns = 0
    for line in lines:
        fields = re.split(r"\s*[,;]\s*|\s+", line.text)
        columns = columns or len(fields)
        try:
            if len(fields) != columns or columns not in (2, 3):
                raise ValueError
            *edges, weight = map(_finite, fields)
        except ValueError:
            raise line.error(HISTOGRAM_LINE) from None
        size = sum(edges) / len(edges) * (unit_bytes or 1)
        if edges[-1] < edges[0] or (len(edges) == 2 and edges[0] < 0):
            raise line.error("the edges of a bin must ascend from 0")
        if len(edges) == 2:
            size = max(1.0, round(size))
            bins.append((edges[0], edges[1], line))
        if not 1 <= size <= LARGEST_SIZE_BYTES or abs(size - round(size)) > 1e-9 * size:
            raise line.error("the size must be whole bytes, 1 to 1e12; leave others out")
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise line.error("the weight must be 0 to 1e18")
        if len(sizes) == MOST_HISTOGRAM_LINES:
            raise ValueError(f"{path} has more than {MOST_HISTOGRAM_LINES} lines")
        sizes.append(round(size))
        weights.append(weight)
    if not sizes:
        raise ValueError(f"{path} has no sizes; {HISTOGRAM_LINE}, one a line")
    for (_, end, before), (begin, _, line) in pairwise(sorted(bins)):
        if begin < end * (1 - 1e-9):
            raise line.error(f"{HISTOGRAM_LINE}; this bin overlaps that of line {before.number}")
    if sum(weights) == 0:
        raise ValueError(f"{path} has only zero weights")
    return sizes, weights


HISTOGRAM_LINE = "expected `bytes weight`, or `low high weight` of a bin"
HISTOGRAM_HEAD = "expected a title with a unit of bytes, such as size_kB, and a title of counts"
_PREFIXES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_PREFIXES |= {"kilo": 1e3, "mega": 1e6, "giga": 1e9}
_PREFIXES |= {"kibi": 1 << 10, "mebi": 1 << 20, "gibi": 1 << 30}
_UNIT = re.compile(rf"(?i:({'|'.join(_PREFIXES)}))(?:B|(?i:bytes?))")
"""Unit of bytes with optional prefix. A lower-case `b` is not accepted, as it may mean bits."""
_LARGE_UNIT = re.compile(
    rf"(?<![a-z])({'|'.join(filter(None, _PREFIXES))}|ti?|tera|tebi)(b|bits?|bytes?)(?![a-z])",
    re.IGNORECASE,
)
_SIZE_WORDS = "size sizes event fragment message packet payload data total in of the"
_EDGE_WORDS = "low lower left min from begin high upper right max to end edge bin x"


def _histogram_head(line: Line) -> float | None:
    """Return the unit (in bytes) that a header line names; None for a line of numbers. Titles of
    size columns must consist of known words and units: others may mean counts."""
    titles = [each.strip() for each in re.split(r"[,;\t]|\s{2,}", line.text)]
    titles = titles if len(titles) > 1 else line.text.split()
    if any(_is_number(word) for each in titles for word in each.split()):
        return None
    words = [re.findall(r"[^\W_]+", title) for title in titles[:-1] or titles]
    units = [found for title in words for word in title if (found := _UNIT.fullmatch(word))]
    edges = set(_EDGE_WORDS.split())
    known = edges | {*_SIZE_WORDS.split(), *(found[0].lower() for found in units)}
    factors = {_PREFIXES[found[1].lower()] for found in units}
    is_size = all(words) and not (titles[1:] and _LARGE_UNIT.search(titles[-1]))
    is_size &= {word.lower() for title in words for word in title} <= known
    has_bins = len(words) == 1 or all(edges & {word.lower() for word in each} for each in words)
    if not is_size or not has_bins or len(factors) > 1:
        raise line.error(HISTOGRAM_HEAD)
    return factors.pop() if factors else 1.0


def _commented_unit(path: Path, comments: list[str]) -> float | None:
    """Return the unit (in bytes) that comments above the first data line name, else None."""
    for number, text in enumerate(comments, start=1):
        if _LARGE_UNIT.search(text):
            return _histogram_head(Line(path, number, text.strip("# \t")))
    return None


def trace(path: Path) -> array[float]:
    """Read arrival times (s) from a file with one time per line, in ascending order."""
    times = array("d")
    for line in _lines(path, read_text(path, LARGEST_FILE_BYTES).splitlines()):
        try:
            time = _finite(line.text)
        except ValueError:
            raise line.error("expected a time in seconds") from None
        if not 0 <= time <= LATEST_ARRIVAL_S:
            raise line.error(f"the time must be 0 to {LATEST_ARRIVAL_S:g} s")
        if times and time < times[-1]:
            raise line.error("times must not decrease")
        times.append(time)
    if not times:
        raise ValueError(f"{path} has no times; expected one arrival time in seconds a line")
    if times[-1] == 0:
        raise ValueError(f"{path} has only arrivals at 0 s; expected times that advance")
    return times


_PERFTEST_TABLE = re.compile(r"\s*#bytes\s+#iterations\s+(.*)")
_PERFTEST_HEADER = re.compile(r"#, *(\w+)\s*")
_PERFTEST_SAMPLE = re.compile(r"\s*(\d{1,9}), *(\S+)\s*")


_Row = tuple[Line, str, str]
"""A line, its latency and its count."""


def latencies(path: Path) -> tuple[array[float], array[float]]:
    """Read a file of latencies in microseconds; return ascending latencies (s) and their counts. A
    line has a latency and optionally a count. The file may also be the output of perftest's
    `ib_write_lat` with -U or -H, from which only the samples are read."""
    texts = read_text(path, LARGEST_FILE_BYTES).splitlines()
    lines = [Line(path, *each) for each in enumerate(texts, start=1)]
    counts: dict[float, float] = {}
    rows = _perftest_samples(lines) or _latency_rows(lines)
    if len(rows) > MOST_LATENCIES:
        raise ValueError(f"{path} has more than {MOST_LATENCIES} latencies")
    for line, latency_text, count_text in rows:
        try:
            latency_us, count = _finite(latency_text), _finite(count_text)
        except ValueError:
            raise line.error("expected a latency in us") from None
        if not 0 <= latency_us <= LONGEST_LATENCY_US:
            raise line.error(f"the latency must be 0 to {LONGEST_LATENCY_US:g} us")
        if not 0 <= count <= LARGEST_WEIGHT or count % 1:
            raise line.error("expected a latency in us and its count, a whole number up to 1e18")
        counts[latency_us] = counts.get(latency_us, 0.0) + count
    if not rows:
        raise ValueError(f"{path} has no latencies; expected one in us a line")
    if sum(counts.values()) == 0:
        raise ValueError(f"{path} has only zero counts")
    rising = sorted(counts)
    return array("d", [us * 1e-6 for us in rising]), array("d", [counts[us] for us in rising])


def _perftest_samples(lines: list[Line]) -> list[_Row]:
    """Return the samples below the line `#, usec` in output of perftest; none without this line."""
    tables = [(line, m[1]) for line in lines if (m := _PERFTEST_TABLE.fullmatch(line.text))]
    for line, columns in tables:
        if not columns.startswith("t_"):
            other = "bandwidths of another program, such as ib_write_bw; "
            other = other if columns.startswith("BW") else ""
            raise line.error(f"{other}expected latencies; measure with ib_write_lat -U")
    heads = [(line, m[1]) for line in lines if (m := _PERFTEST_HEADER.fullmatch(line.text))]
    for line, unit in heads:
        if unit != "usec":
            raise line.error("expected samples in usec; measure without -C")
    if len(heads) > 1:
        raise heads[1][0].error(
            "only one list of samples; measure one message size, with one of -U, -H"
        )
    if tables and not heads:
        refusal = "a summary, without single latencies; ib_write_lat prints them with -U"
        raise tables[0][0].error(f"{refusal}, or their histogram with -H")
    rows: list[_Row] = []
    for line in lines[heads[0][0].number :] if heads else []:
        sample = _PERFTEST_SAMPLE.fullmatch(line.text)
        if sample is None:
            break
        if int(sample[1]) != len(rows) + 1:
            raise line.error(f"expected sample {len(rows) + 1}")
        rows.append((line, sample[2], "1"))
    if heads and not rows:
        raise heads[0][0].error("samples below this line")
    return rows


def _latency_rows(lines: list[Line]) -> list[_Row]:
    """Return the non-empty lines of a list of latencies; either all lines have a count or none."""
    rows: list[_Row] = []
    columns = 0
    for line in lines:
        if not (fields := line.text.split("#")[0].split()):
            continue
        columns = columns or len(fields)
        if len(fields) != columns or columns > 2:
            raise line.error("expected a latency in us, or a latency and a count")
        rows.append((line, fields[0], fields[1] if columns == 2 else "1"))
    return rows


def _lines(path: Path, texts: list[str]) -> list[Line]:
    """Return the non-empty lines, without comments (from # on) and surrounding blanks."""
    bare = ((number, text.split("#")[0].strip()) for number, text in enumerate(texts, start=1))
    return [Line(path, number, text) for number, text in bare if text]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value

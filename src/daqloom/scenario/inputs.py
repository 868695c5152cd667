"""Reads files that a scenario names: size histograms, arrival traces, filling schemes, latencies.

Such files are not trusted: their length is bounded and each line is checked.
Errors are ValueErrors that name the file and the line.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

from daqloom.scenario.files import read_text

LARGEST_FILE_BYTES = 64 << 20
MOST_HISTOGRAM_LINES = 1_000_000
LARGEST_SIZE_BYTES = 10**12
LARGEST_WEIGHT = 1e18
LATEST_ARRIVAL_S = 1e6
MOST_LATENCIES = 1_000_000
LONGEST_LATENCY_US = 1e6


def folder_of(info: Any) -> Path:
    """Return the folder of relative paths: the scenario file's, else the working folder."""
    context = info.context or {}
    folder: Path = context.get("folder") or Path.cwd()
    return folder


def resolve(name: str, folder: Path) -> Path:
    """Return the absolute path of a file that a scenario in `folder` names."""
    return (folder / name).absolute()


def digest(*content: array[Any] | bytes) -> str:
    """Return the SHA-256 of what was read; empty where nothing was."""
    found = hashlib.sha256()
    for part in content:
        found.update(bytes(part))
    return found.hexdigest() if content else ""


def histogram(name: str, folder: Path) -> tuple[array[int], array[float]]:
    """Read sizes (B) and weights from a file with a size and a weight a line, or both edges of a
    bin and a weight; a bin counts with its middle. Blanks, commas or semicolons part the columns. A
    head line may name the unit of sizes, such as `size_kB,count`."""
    sizes, weights = array("q"), array("d")
    bins: list[tuple[float, float, int, str]] = []
    path = resolve(name, folder)
    texts = read_text(path, LARGEST_FILE_BYTES).splitlines()
    lines = _numbered(texts)
    unit_bytes = _commented_unit(path, texts[: lines[0][0] - 1]) if lines else None
    if lines and (head := _histogram_head(path, *lines[0])):
        unit_bytes, lines = head, lines[1:]
    columns = 0
    for number, line in lines:
        fields = re.split(r"\s*[,;]\s*|\s+", line)
        columns = columns or len(fields)
        try:
            if len(fields) != columns or columns not in (2, 3):
                raise ValueError
            *edges, weight = map(_finite, fields)
        except ValueError:
            raise ValueError(_at(path, number, line, HISTOGRAM_LINE)) from None
        size = sum(edges) / len(edges) * (unit_bytes or 1)
        if edges[-1] < edges[0] or (len(edges) == 2 and edges[0] < 0):
            raise ValueError(_at(path, number, line, "the edges of a bin must ascend from 0"))
        if len(edges) == 2:
            size = max(1.0, round(size))
            bins.append((edges[0], edges[1], number, line))
        if not 1 <= size <= LARGEST_SIZE_BYTES or abs(size - round(size)) > 1e-9 * size:
            raise ValueError(
                _at(path, number, line, "the size must be whole bytes, 1 to 1e12; leave others out")
            )
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise ValueError(_at(path, number, line, "the weight must be 0 to 1e18"))
        if len(sizes) == MOST_HISTOGRAM_LINES:
            raise ValueError(f"{path} has more than {MOST_HISTOGRAM_LINES} lines")
        sizes.append(round(size))
        weights.append(weight)
    if not sizes:
        raise ValueError(f"{path} has no sizes; {HISTOGRAM_LINE}, one a line")
    for (_, end, before, _), (begin, _, number, line) in pairwise(sorted(bins)):
        if begin < end * (1 - 1e-9):
            expected = f"{HISTOGRAM_LINE}; this bin overlaps that of line {before}"
            raise ValueError(_at(path, number, line, expected))
    if sum(weights) == 0:
        raise ValueError(f"{path} has only zero weights")
    return sizes, weights


HISTOGRAM_LINE = "expected `bytes weight`, or `low high weight` of a bin"
HISTOGRAM_HEAD = "expected a title with a unit of bytes, such as size_kB, and a title of counts"
_PREFIXES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}
_PREFIXES |= {"kilo": 1e3, "mega": 1e6, "giga": 1e9}
_PREFIXES |= {"kibi": 1 << 10, "mebi": 1 << 20, "gibi": 1 << 30}
_UNIT = re.compile(rf"(?i:({'|'.join(_PREFIXES)}))(?:B|(?i:bytes?))")
"""A unit of bytes; `kb` may be bits as well."""
_LARGE_UNIT = re.compile(
    rf"(?<![a-z])({'|'.join(filter(None, _PREFIXES))}|ti?|tera|tebi)(b|bits?|bytes?)(?![a-z])",
    re.IGNORECASE,
)
_SIZE_WORDS = "size sizes event fragment message packet payload data total in of the"
_EDGE_WORDS = "low lower left min from begin high upper right max to end edge bin x"


def _histogram_head(path: Path, number: int, line: str) -> float | None:
    """Return the unit (B) that a line of titles names; None for a line without titles. Titles of
    sizes have words of sizes and units alone, as others may be of counts or of other units."""
    titles = [each.strip() for each in re.split(r"[,;\t]|\s{2,}", line)]
    titles = titles if len(titles) > 1 else line.split()
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
        raise ValueError(_at(path, number, line, HISTOGRAM_HEAD))
    return factors.pop() if factors else 1.0


def _commented_unit(path: Path, comments: list[str]) -> float | None:
    """Return the unit (B) that the comments above the first line name; None without one."""
    for number, line in enumerate(comments, start=1):
        if _LARGE_UNIT.search(line):
            return _histogram_head(path, number, line.strip("# \t"))
    return None


def trace(name: str, folder: Path) -> array[float]:
    """Read arrival times (s) from a file with one a line, not decreasing."""
    times = array("d")
    path = resolve(name, folder)
    for number, line in _numbered(read_text(path, LARGEST_FILE_BYTES).splitlines()):
        try:
            time = _finite(line)
        except ValueError:
            raise ValueError(_at(path, number, line, "expected a time in seconds")) from None
        if not 0 <= time <= LATEST_ARRIVAL_S:
            raise ValueError(
                _at(path, number, line, f"the time must be 0 to {LATEST_ARRIVAL_S:g} s")
            )
        if times and time < times[-1]:
            raise ValueError(_at(path, number, line, "times must not decrease"))
        times.append(time)
    if not times:
        raise ValueError(f"{path} has no times; expected one arrival time in seconds a line")
    if times[-1] == 0:
        raise ValueError(f"{path} has only arrivals at 0 s; expected times that advance")
    return times


_PERFTEST_TABLE = re.compile(r"\s*#bytes\s+#iterations\s+(.*)")
_PERFTEST_HEADER = re.compile(r"#, *(\w+)\s*")
_PERFTEST_SAMPLE = re.compile(r"\s*(\d{1,9}), *(\S+)\s*")


def latencies(name: str, folder: Path) -> tuple[array[float], array[float]]:
    """Read latencies (s), ascending, with the count of each, from a file in microseconds. The file
    has one latency a line, or a latency and a count; or it is the output of `ib_write_lat` of
    perftest with -U or -H, of which only the samples are read."""
    path = resolve(name, folder)
    lines = list(enumerate(read_text(path, LARGEST_FILE_BYTES).splitlines(), start=1))
    counts: dict[float, float] = {}
    rows = _perftest_samples(path, lines) or _latency_rows(path, lines)
    if len(rows) > MOST_LATENCIES:
        raise ValueError(f"{path} has more than {MOST_LATENCIES} latencies")
    for number, line, latency_text, count_text in rows:
        try:
            latency_us, count = _finite(latency_text), _finite(count_text)
        except ValueError:
            raise ValueError(_at(path, number, line, "expected a latency in us")) from None
        if not 0 <= latency_us <= LONGEST_LATENCY_US:
            raise ValueError(
                _at(path, number, line, f"the latency must be 0 to {LONGEST_LATENCY_US:g} us")
            )
        if not 0 <= count <= LARGEST_WEIGHT or count % 1:
            raise ValueError(
                _at(
                    path,
                    number,
                    line,
                    "expected a latency in us and its count, a whole number up to 1e18",
                )
            )
        counts[latency_us] = counts.get(latency_us, 0.0) + count
    if not rows:
        raise ValueError(f"{path} has no latencies; expected one in us a line")
    if sum(counts.values()) == 0:
        raise ValueError(f"{path} has only zero counts")
    rising = sorted(counts)
    return array("d", [us * 1e-6 for us in rising]), array("d", [counts[us] for us in rising])


def _perftest_samples(path: Path, lines: list[tuple[int, str]]) -> list[tuple[int, str, str, str]]:
    """Return line, latency and count of the samples below the line `#, usec`, if there is one."""
    tables = [(n, line, m[1]) for n, line in lines if (m := _PERFTEST_TABLE.fullmatch(line))]
    for number, line, columns in tables:
        if not columns.startswith("t_"):
            other = "bandwidths of another program, such as ib_write_bw; "
            other = other if columns.startswith("BW") else ""
            raise ValueError(
                _at(path, number, line, other + "expected latencies; measure with ib_write_lat -U")
            )
    headers = [(n, match) for n, line in lines if (match := _PERFTEST_HEADER.fullmatch(line))]
    for number, match in headers:
        if match[1] != "usec":
            raise ValueError(
                _at(path, number, match[0], "expected samples in usec; measure without -C")
            )
    if len(headers) > 1:
        number, match = headers[1]
        raise ValueError(
            _at(
                path,
                number,
                match[0],
                "only one list of samples; measure one message size, with one of -U, -H",
            )
        )
    if tables and not headers:
        number, line, _ = tables[0]
        raise ValueError(
            _at(
                path,
                number,
                line,
                "a summary, without single latencies; ib_write_lat prints them with -U, or their "
                "histogram with -H",
            )
        )
    rows: list[tuple[int, str, str, str]] = []
    for number, line in lines[headers[0][0] :] if headers else []:
        sample = _PERFTEST_SAMPLE.fullmatch(line)
        if sample is None:
            break
        if int(sample[1]) != len(rows) + 1:
            raise ValueError(_at(path, number, line, f"expected sample {len(rows) + 1}"))
        rows.append((number, line, sample[2], "1"))
    if headers and not rows:
        raise ValueError(_at(path, headers[0][0], headers[0][1][0], "samples below this line"))
    return rows


def _latency_rows(path: Path, lines: list[tuple[int, str]]) -> list[tuple[int, str, str, str]]:
    """Return line, latency and count; all lines have a count, or none."""
    rows: list[tuple[int, str, str, str]] = []
    columns = 0
    for number, line in lines:
        if not (fields := line.split("#")[0].split()):
            continue
        columns = columns or len(fields)
        if len(fields) != columns or columns > 2:
            raise ValueError(
                _at(path, number, line, "expected a latency in us, or a latency and a count")
            )
        rows.append((number, line, fields[0], fields[1] if columns == 2 else "1"))
    return rows


def _numbered(texts: list[str]) -> list[tuple[int, str]]:
    """Return numbered lines without comments (from # on) and blanks."""
    lines = enumerate(texts, start=1)
    return [(number, text) for number, line in lines if (text := line.split("#")[0].strip())]


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


def _at(path: Path, number: int, line: str, expected: str) -> str:
    return f'{path}, line {number} has "{line[:40]}": {expected}'

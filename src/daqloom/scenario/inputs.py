"""Reads files that a scenario names: size histograms, arrival traces, filling schemes, latencies.

Such files are not trusted: their length is bounded and each line is checked.
Errors are ValueErrors that name the file and the line.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from pathlib import Path
from typing import Any

from daqloom.scenario.files import read_text

LARGEST_FILE_BYTES = 64 << 20
MOST_HISTOGRAM_LINES = 1_000_000
MOST_CROSSINGS = 1_000_000
DEEPEST_NESTING = 8
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
    """Read sizes (B) and weights from a file with one `bytes weight` pair a line."""
    sizes, weights = array("q"), array("d")
    path = resolve(name, folder)
    for number, line in _lines(path):
        try:
            size_text, weight_text = line.split()
            size, weight = _finite(size_text), _finite(weight_text)
        except ValueError:
            raise ValueError(_at(path, number, line, "expected `bytes weight`")) from None
        if not 1 <= size <= LARGEST_SIZE_BYTES or size != round(size):
            raise ValueError(_at(path, number, line, "the size must be whole bytes, 1 to 1e12"))
        if not 0 <= weight <= LARGEST_WEIGHT:
            raise ValueError(_at(path, number, line, "the weight must be 0 to 1e18"))
        if len(sizes) == MOST_HISTOGRAM_LINES:
            raise ValueError(f"{path} has more than {MOST_HISTOGRAM_LINES} lines")
        sizes.append(round(size))
        weights.append(weight)
    if not sizes:
        raise ValueError(f"{path} has no sizes; expected one `bytes weight` pair a line")
    if sum(weights) == 0:
        raise ValueError(f"{path} has only zero weights")
    return sizes, weights


def trace(name: str, folder: Path) -> array[float]:
    """Read arrival times (s) from a file with one a line, not decreasing."""
    times = array("d")
    path = resolve(name, folder)
    for number, line in _lines(path):
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
        if not 0 <= count <= LARGEST_WEIGHT:
            raise ValueError(_at(path, number, line, "the count must be 0 to 1e18"))
        counts[latency_us] = counts.get(latency_us, 0.0) + count
    if not rows:
        raise ValueError(f"{path} has no latencies; expected one in us a line")
    if sum(counts.values()) == 0:
        raise ValueError(f"{path} has only zero counts")
    rising = sorted(counts)
    return array("d", [us * 1e-6 for us in rising]), array("d", [counts[us] for us in rising])


def _perftest_samples(path: Path, lines: list[tuple[int, str]]) -> list[tuple[int, str, str, str]]:
    """Return line, latency and count of the samples below the line `#, usec`, if there is one."""
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


_RUNS = re.compile(r"\s*(?:(\d{1,7})([be])|(\d{1,7})?\(|(\)))")


def filling(text: str, folder: Path) -> bytes:
    """Return one byte per bunch crossing, 1 filled or 0 empty, from run lengths or a file of
    them."""
    where = "lhc.filling"
    if not is_scheme(text):
        path = resolve(text, folder)
        where = str(path)
        text = " ".join(line for _, line in _lines(path))
    pattern = _expand(text, where)
    if not pattern.count(1):
        raise ValueError(f"{where} fills no bunch; expected run lengths such as 72b 8e")
    return pattern


def is_scheme(text: str) -> bool:
    """Return whether `text` is a filling scheme itself, not the name of a file with one."""
    return re.fullmatch(r"[0-9be()\s]+", text) is not None


def _expand(text: str, where: str) -> bytes:
    stack: list[tuple[int, bytearray]] = [(1, bytearray())]
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _RUNS.match(text, position)
        if match is None:
            raise ValueError(
                f'{where} has "{text[position : position + 12].strip()}" where a run length such '
                "as 72b, 8e or 3(72b 8e) was expected"
            )
        run, kind, repeat, closing = match.groups()
        if closing:
            if len(stack) == 1:
                raise ValueError(f"{where} closes a bracket that is not open")
            times, group = stack.pop()
            _check_length(len(stack[-1][1]) + times * len(group), where)
            stack[-1][1].extend(bytes(group) * times)
        elif kind:
            _check_length(len(stack[-1][1]) + int(run), where)
            stack[-1][1].extend((b"\1" if kind == "b" else b"\0") * int(run))
        else:
            if len(stack) > DEEPEST_NESTING:
                raise ValueError(f"{where} nests brackets more than {DEEPEST_NESTING} deep")
            stack.append((int(repeat or 1), bytearray()))
        position = match.end()
    if len(stack) > 1:
        raise ValueError(f"{where} opens a bracket that it never closes")
    return bytes(stack[0][1])


def _check_length(crossings: int, where: str) -> None:
    if crossings > MOST_CROSSINGS:
        raise ValueError(f"{where} is longer than {MOST_CROSSINGS} bunch crossings")


def _lines(path: Path) -> list[tuple[int, str]]:
    """Return numbered lines without comments (from # on) and blanks."""
    lines = enumerate(read_text(path, LARGEST_FILE_BYTES).splitlines(), start=1)
    return [(number, text) for number, line in lines if (text := line.split("#")[0].strip())]


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _at(path: Path, number: int, line: str, expected: str) -> str:
    return f'{path}, line {number} has "{line[:40]}": {expected}'

"""Filling schemes: which bunch crossings of the accelerator have colliding bunches. A scheme is
given as run lengths, in a key or a file, or as a file of the accelerator's tool, which lists the
filled slots of both beams. Slot s of beam 1 collides with slot s + offset of beam 2; `OFFSETS` has
the offset for each collision point."""

from __future__ import annotations

import json
import re
from pathlib import Path

from daqloom.scenario.files import read_text
from daqloom.scenario.inputs import LARGEST_FILE_BYTES, resolve

MOST_CROSSINGS = 1_000_000
DEEPEST_NESTING = 8
SLOTS = 3564
"""Slots of 25 ns of the LHC."""
BUCKETS_PER_SLOT = 10
"""Buckets (periods of the LHC's radio frequency) in a slot; they are numbered from 1."""
OFFSETS = {"IP1": 0, "IP5": 0, "IP2": 891, "IP8": 2670}
"""Slots by which beam 2 lags at the collision points of ATLAS and CMS, ALICE (IP2), LHCb (IP8)."""
DEFAULT_POINT = "IP1"
_FILE = re.compile(r"(.+?)(?::(IP\d+))?", re.IGNORECASE)
_RUNS = re.compile(r"\s*(?:(\d{1,7})([be])|(\d{1,7})?\(|(\)))")
_BUCKETS = re.compile(
    r"\s*(?:b|beam ?)([12])(?:\s+(?:filled|rf|buckets?))+\s*[,;\t](.*)", re.IGNORECASE
)


def pattern_of(text: str, folder: Path) -> bytes:
    """Return one byte per bunch crossing, 1 filled or 0 empty, from run lengths or from a file. The
    name of a file with both beams may end in a collision point (":IP8"). Raises ValueError."""
    where, expected = "lhc.filling", "expected run lengths such as 72b 8e"
    if is_scheme(text):
        pattern = _expand(text, where)
    else:
        name, point = _parts(text)
        path = resolve(name, folder)
        where = str(path)
        if point and point not in OFFSETS:
            raise ValueError(
                f"{where}:{point} names no collision point; expected IP1, IP2, IP5 or IP8"
            )
        content = read_text(path, LARGEST_FILE_BYTES)
        if beams := _beams(path, content):
            pattern = _collisions(path, *beams, point or DEFAULT_POINT)
            expected = f"expected beams that collide at {point or DEFAULT_POINT}"
        elif point:
            refusal = f"{path} does not list both beams; leave :{point} out"
            raise ValueError(f"{refusal}, or give the JSON or CSV of the accelerator's tool")
        else:
            lines = (line.split("#")[0].strip() for line in content.splitlines())
            pattern = _expand(" ".join(filter(None, lines)), where)
    if not pattern.count(1):
        raise ValueError(f"{where} fills no bunch; {expected}")
    return pattern


def is_scheme(text: str) -> bool:
    """Return whether `text` is a filling scheme and not a file name."""
    return re.fullmatch(r"[0-9be()\s]+", text) is not None


def absolute_name(text: str, folder: Path) -> str:
    """Return the absolute path of a file name, with its suffix for the collision point, if any."""
    name, point = _parts(text)
    return str(resolve(name, folder)) + (f":{point}" if point else "")


def _parts(text: str) -> tuple[str, str]:
    found = _FILE.fullmatch(text)
    return (found[1], (found[2] or "").upper()) if found else (text, "")


def _beams(path: Path, content: str) -> tuple[bytes, bytes] | None:
    """Return the slots of both beams; None for a file that does not list beams."""
    if content.lstrip().startswith("{"):
        return _of_json(path, content)
    if any(_BUCKETS.fullmatch(line) for line in content.splitlines()):
        return _of_csv(path, content)
    return None


def _collisions(path: Path, one: bytes, two: bytes, point: str) -> bytes:
    """Return the crossings in which both beams have bunches at a collision point of the LHC. For a
    ring of another length, only points with offset 0 are possible."""
    offset = OFFSETS[point]
    if offset and len(one) != SLOTS:
        refusal = f"{path} lists {len(one)} slots; :{point} is known for {SLOTS} slots"
        raise ValueError(f"{refusal}, or {SLOTS * BUCKETS_PER_SLOT} buckets, of the LHC")
    return bytes(one[slot] & two[(slot + offset) % len(two)] for slot in range(len(one)))


def _of_json(path: Path, content: str) -> tuple[bytes, bytes]:
    """Return both beams from JSON lists of 0 and 1, for slots or for all buckets: `{"beam1": […],
    "beam2": […]}`. Other keys are ignored."""
    try:
        document = json.loads(content)
        one, two = (document[name] for name in ("beam1", "beam2"))
        if not (_is_beam(one) and _is_beam(two) and len(one) == len(two)):
            raise ValueError
    except (ValueError, RecursionError, KeyError, TypeError):
        raise ValueError(
            f'{path}: expected "beam1" and "beam2", lists of 0 and 1 of one length, up to '
            f"{MOST_CROSSINGS} slots"
        ) from None
    return _slots(path, bytes(one)), _slots(path, bytes(two))


def _slots(path: Path, beam: bytes) -> bytes:
    """Return the slots of a beam; of a list of all LHC buckets, the first bucket of each slot."""
    if len(beam) != SLOTS * BUCKETS_PER_SLOT:
        return beam
    slots = beam[::BUCKETS_PER_SLOT]
    if slots.count(1) != beam.count(1):
        raise ValueError(
            f"{path} lists {len(beam)} buckets, some of which are filled between the slots; "
            f"expected bunches in buckets 1, 11, … {(SLOTS - 1) * BUCKETS_PER_SLOT + 1} only"
        )
    return slots


def _is_beam(beam: object) -> bool:
    if not isinstance(beam, list) or not 0 < len(beam) <= MOST_CROSSINGS:
        return False
    return all(isinstance(slot, int) and slot in (0, 1) for slot in beam)


def _of_csv(path: Path, content: str) -> tuple[bytes, bytes]:
    """Return both beams from CSV lines that list filled buckets: `B1 filled buckets,1,11,41`."""
    beams: dict[str, bytearray] = {}
    for line in content.splitlines():
        if not (found := _BUCKETS.fullmatch(line)):
            continue
        beam = beams.setdefault(found[1], bytearray(SLOTS))
        for text in filter(None, re.split(r"[,;\s]+", found[2])):
            bucket = int(text) if text.isdecimal() and len(text) < 7 else 0
            slot, rest = divmod(bucket - 1, BUCKETS_PER_SLOT)
            if rest or not 0 <= slot < SLOTS:
                refusal = f'{path} has "{text[:12]}" where a bucket was expected'
                raise ValueError(f"{refusal}: 1, 11, … {(SLOTS - 1) * BUCKETS_PER_SLOT + 1}")
            beam[slot] = 1
    if len(beams) != 2:
        raise ValueError(f"{path} lists the buckets of one beam; expected those of B1 and B2")
    return bytes(beams["1"]), bytes(beams["2"])


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

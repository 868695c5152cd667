"""Lookup of hosts by name, with or without adapter or domain, and Slurm's ranges of names."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, product
from operator import add

from daqloom.base.words import did_you_mean
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import MOST_NODES

_RANGE = re.compile(r"\[([0-9,-]{1,4000})\]")
_EXPECTED = "a range such as node[001-096,100]"
_BETWEEN_PARTS = re.compile(r",(?![^\[\]]*\])")
"""A comma outside of brackets."""


class HostNames:
    """Finds the hosts of a fabric by name."""

    def __init__(self, names: Sequence[str], fabric: str) -> None:
        self._fabric = fabric
        self._place = {name: place for place, name in enumerate(names)}
        self._adapters: dict[str, list[str]] = defaultdict(list)
        for name in names:
            for bare in {name.partition(" ")[0], name.partition(" ")[0].partition(".")[0]}:
                self._adapters[bare].append(name)

    def place(self, name: str, where: str) -> int:
        """Return the index of a host, by its name or by `NAME` if unique; raises TopologyError."""
        found = self._place.get(name)
        if found is not None:
            return found
        own = self._adapters.get(name) or self._adapters.get(name.partition(".")[0], [])
        if len(own) == 1 and " " not in name:
            return self._place[own[0]]
        if len(own) > 1:
            some = ", ".join(f'"{each}"' for each in own[:4])
            raise TopologyError(f'{where}: host "{name[:80]}" has several adapters; give {some}')
        start = max((bare for bare in self._adapters if name.startswith(bare)), key=len, default="")
        known = self._adapters[start] if start else self._place
        hint = did_you_mean(start or name, known, "give the name of one of its hosts")
        raise TopologyError(f'{where}: there is no host "{name[:80]}" in {self._fabric}; {hint}')


def expand(text: str, where: str) -> Iterator[str]:
    """Yield the names of a Slurm list, `node[001-096,100],login1`. Raises TopologyError."""
    if not set("[],").intersection(text):
        yield text
        return
    count = 0
    for part in filter(str.strip, _BETWEEN_PARTS.split(text)):
        pieces = _RANGE.split(part.strip())
        if bad := next((each for each in pieces[::2] if "[" in each or "]" in each), None):
            raise TopologyError(f'{where}: cannot read "{bad[:60]}"; expected {_EXPECTED}')
        numbers = [list(_numbers(each, where)) for each in pieces[1::2]]
        for chosen in islice(product(*numbers), MOST_NODES + 1):
            count += 1
            if count > MOST_NODES:
                raise _too_long(where)
            yield "".join(map(add, pieces[::2], [*chosen, ""]))


def _numbers(text: str, where: str) -> Iterator[str]:
    for each in text.split(","):
        first, dash, last = each.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(first + last) > 18:
            raise TopologyError(f'{where}: cannot read "[{text[:60]}]"; expected {_EXPECTED}')
        end = int(last or first)
        if end < int(first):
            raise TopologyError(f'{where}: "[{text[:60]}]" runs backwards; expected {_EXPECTED}')
        if end - int(first) > MOST_NODES:
            raise _too_long(where)
        yield from (str(number).zfill(len(first)) for number in range(int(first), end + 1))


def _too_long(where: str) -> TopologyError:
    return TopologyError(f"{where}: more than {MOST_NODES} hosts; expected a shorter list")

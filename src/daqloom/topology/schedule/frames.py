"""A schedule of linear shift in which every leaf sends to every leaf in each phase.

The slots form one frame for each of the L leaves; a frame has one slot for each of the h hosts of a
leaf. The readout units of a frame are those of one leaf. The builder units of a frame are ⌊h / L⌋
turns; a turn is one builder unit from each leaf. The leftover slots, the extras, go to one leaf in
each frame, in rotation.

In each phase, a frame of readout units sends to every position of a frame once. A leaf thus has one
flow for each turn to every leaf, including itself, and one more for each extra. The load on cables
between leaves is the same in each phase. In the default order, a leaf sends to only one or two
other leaves in a phase.
"""

from dataclasses import dataclass

import numpy as np

from daqloom.topology.schedule.slots import DUMMY, Slots


@dataclass(frozen=True)
class Frames:
    """Frames of slots for a set of leaves; leaves, and hosts of a leaf, are numbered from 0."""

    hosts: list[list[int]]
    """Hosts of each leaf."""
    turns: int
    length: int
    """Slots in a frame: at least the hosts of a leaf, and at least the slots of all turns."""

    @property
    def count(self) -> int:
        """Number of frames, equal to the number of leaves."""
        return len(self.hosts)

    @property
    def extras(self) -> int:
        """Number of leftover slots in a frame, after its turns."""
        return self.length - self.turns * self.count

    def host(self, leaf: int, number: int) -> int:
        """Return a host of a leaf by number, or `DUMMY` if the leaf has fewer hosts."""
        hosts = self.hosts[leaf]
        return hosts[number] if number < len(hosts) else DUMMY

    def of_turn(self, turn: int, leaf: int) -> list[int]:
        """Return the hosts of a leaf in this turn, one for each frame (a group of slots)."""
        return [self.host(leaf, self.turns * frame + turn) for frame in range(self.count)]

    def of_extra(self, extra: int) -> list[tuple[int, int]]:
        """Return the leaf and host in one leftover slot, for each frame (a group of slots)."""
        leaves = [(frame + extra + 1) % self.count for frame in range(self.count)]
        return [(leaf, self.host(leaf, self.turns * self.count + extra)) for leaf in leaves]

    def schedule(self) -> tuple[Slots, Slots]:
        """Return the slots of the readout units, and those of the builder units."""
        readouts = [[self.host(leaf, each) for each in range(self.length)] for leaf in self._leaves]
        builders = [
            self.of_turn(turn, leaf) for turn in range(self.turns) for leaf in self._leaves
        ] + [[host for _, host in self.of_extra(extra)] for extra in range(self.extras)]
        return np.array(readouts, np.int32).reshape(-1), np.array(builders, np.int32).T.reshape(-1)

    @property
    def _leaves(self) -> range:
        return range(self.count)

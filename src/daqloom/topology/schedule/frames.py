"""A schedule of linear shift in which every leaf sends to every leaf in each phase.

The slots form one frame for each of the L leaves, and a frame has one slot for each of the h hosts
of a leaf. The readout units of a frame are those of one leaf. The builder units of a frame are
⌊h / L⌋ turns of one builder unit of each leaf; the remaining slots, the extras, go to one leaf
after the other, frame by frame.

In each phase a frame of readout units sends to every position of a frame once. A leaf thus has one
flow for each turn to every leaf, including itself, and one more for each extra. Each phase loads
the cables between leaves as the average phase does. In the usual order, by contrast, a leaf sends
to only one or two other leaves in a phase.
"""

from dataclasses import dataclass

import numpy as np

from daqloom.topology.schedule.slots import DUMMY, Slots


@dataclass(frozen=True)
class Frames:
    """The frames of some leaves; leaves, and the hosts of each, are numbered from 0."""

    hosts: list[list[int]]
    """By leaf."""
    turns: int
    length: int
    """Slots of a frame, no less than a leaf has hosts, nor than the turns take."""

    @property
    def count(self) -> int:
        """Frames, as many as leaves."""
        return len(self.hosts)

    @property
    def extras(self) -> int:
        """Slots of a frame behind the turns."""
        return self.length - self.turns * self.count

    def host(self, leaf: int, number: int) -> int:
        """A host of a leaf, `DUMMY` where it has fewer."""
        hosts = self.hosts[leaf]
        return hosts[number] if number < len(hosts) else DUMMY

    def of_turn(self, turn: int, leaf: int) -> list[int]:
        """The hosts of a leaf that have this turn, by frame."""
        return [self.host(leaf, self.turns * frame + turn) for frame in range(self.count)]

    def of_extra(self, extra: int) -> list[tuple[int, int]]:
        """Leaf and host of an extra slot, by frame."""
        leaves = [(frame + extra + 1) % self.count for frame in range(self.count)]
        return [(leaf, self.host(leaf, self.turns * self.count + extra)) for leaf in leaves]

    def schedule(self) -> tuple[Slots, Slots]:
        """The slots of readout units, and those of builder units."""
        readouts = [[self.host(leaf, each) for each in range(self.length)] for leaf in self._leaves]
        builders = [
            self.of_turn(turn, leaf) for turn in range(self.turns) for leaf in self._leaves
        ] + [[host for _, host in self.of_extra(extra)] for extra in range(self.extras)]
        return np.array(readouts, np.int32).reshape(-1), np.array(builders, np.int32).T.reshape(-1)

    @property
    def _leaves(self) -> range:
        return range(self.count)

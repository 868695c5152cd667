"""The picture behind the formulas: an event fills the buffer as a triangle.

    bytes
      h |     /\\              h = S·(I − O)/I
        |    /   \\            rises at I − O for S/I, falls at O until S/O
        |   /      \
        |  /         \
        +-/------------\\---> time
          0   S/I      S/O

All replies of an event enter the switch at I, its input bandwidth, and leave at O, the rate of one
builder's link. The occupancy of the switch is the sum over the events in it.

Source: ATLAS HL-LHC buffer benchmarking, section 3.3.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Triangle:
    """One event in the buffer. `size_bytes` is S, what the switch holds of an event; `input_bps` is
    I and `output_bps` is O, the rates at which these bytes come and go. All are positive."""

    size_bytes: float
    input_bps: float
    output_bps: float

    @property
    def rise_s(self) -> float:
        """S/I, the time until the last byte has arrived."""
        return 8 * self.size_bytes / self.input_bps

    @property
    def length_s(self) -> float:
        """Time until the last byte has left: S/O, or S/I where the input is the slower one."""
        return 8 * self.size_bytes / min(self.input_bps, self.output_bps)

    @property
    def height_bytes(self) -> float:
        """S·(I − O)/I, the peak occupancy of one event; 0 where I ≤ O."""
        return self.size_bytes * max(0.0, (self.input_bps - self.output_bps) / self.input_bps)

"""Distribution of a random time: a latency, response, jitter, processing or acknowledgement."""

from __future__ import annotations

import operator
from array import array
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import PrivateAttr, model_validator

from daqloom.scenario import inputs
from daqloom.scenario.quantities import Seconds
from daqloom.scenario.schema.part import Part, When

Kind = Literal["fixed", "exponential", "gaussian", "uniform", "histogram"]


class Distribution(Part):
    """A random time, given by mean and spread or by a measured histogram."""

    kind: Kind = "fixed"
    """Distribution of the time."""
    mean: Annotated[Seconds, When(".kind", ("fixed", "exponential", "gaussian", "uniform"))] = 0.0
    """Mean time (s)."""
    spread: Annotated[Seconds, When(".kind", ("gaussian", "uniform"))] = 0.0
    """Standard deviation (gaussian; a negative time counts as zero) or half width (uniform) (s)."""
    file: Annotated[inputs.FileName, When(".kind", ("histogram",))] = ""
    """File of the histogram: one time in microseconds a line, or a time and a count, or the output
    of `ib_write_lat` with -U or -H; relative to the scenario's folder."""
    less: Annotated[Seconds, When(".kind", ("histogram",))] = 0.0
    """Time subtracted from each time of the file, such as the delay of the link, which the
    simulation adds itself; results below 0 become 0 (s)."""

    _measured: tuple[array[float], array[float]] | None = PrivateAttr(default=None)

    @property
    def measured_times(self) -> tuple[list[float], list[float]] | None:
        """Times of the file minus `less` (s), and their counts; None unless `kind` is
        "histogram"."""
        if self._measured is None:
            return None
        values_s, counts = self._measured
        return [max(0.0, each - self.less) for each in values_s], counts.tolist()

    @property
    def mean_s(self) -> float:
        """Mean time (s), of a histogram too."""
        if (measured := self.measured_times) is None:
            return self.mean
        values_s, counts = measured
        return float(sum(map(operator.mul, values_s, counts)) / sum(counts))

    def digest(self) -> str:
        """Return the digest of the measured histogram, "" without a file."""
        return inputs.digest(*(self._measured or ()))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "uniform" and self.spread > self.mean:
            raise ValueError(
                "spread is larger than mean; a uniform time lies between mean - spread and "
                "mean + spread and cannot be negative"
            )
        if self.kind == "histogram":
            if not self.file:
                raise ValueError('kind = "histogram" requires a file')
            self._measured = inputs.latencies(Path(self.file))
        return self

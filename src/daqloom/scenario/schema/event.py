"""[event]: sizes and arrivals of events, and fragments of sources."""

from __future__ import annotations

import math
import operator
from array import array
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo, model_validator

from daqloom.scenario import inputs
from daqloom.scenario.filling import absolute_name, is_scheme, pattern_of
from daqloom.scenario.quantities import FrequencyOrNone, PositiveBytes, PositiveSeconds
from daqloom.scenario.schema.building import BUILT, PACKED, PULL
from daqloom.scenario.schema.part import ASSUMED, DefaultWith, Guess, Number, Part, When, items

SizeDistribution = Literal["fixed", "gaussian", "gamma", "poisson", "histogram"]
Arrivals = Literal["poisson", "deterministic", "lhc", "trace"]


def _read_share(value: object) -> object:
    if isinstance(value, list | tuple):
        if all(isinstance(w, int | float) and 0 < w < math.inf for w in value):
            return tuple(float(weight) for weight in value)
        raise ValueError("has a weight that is not a positive number")
    if value != "equal":
        raise ValueError('is not known; expected "equal" or a list of one weight per source')
    return value


Share = Annotated[Literal["equal"] | tuple[float, ...], BeforeValidator(_read_share)]

WIDEST_GAUSSIAN = 1 / 3
"""Largest relative standard deviation of gaussian sizes. Zero is then three standard deviations
below the mean, so that cutting negative sizes does not shift the mean."""
SHORTEST_BUNCH_SPACING_S = 1e-9
LONGEST_BUNCH_SPACING_S = 1e-6

NOMINAL_FILLING = "3(2(3(72b 8e) 30e) 4(72b 8e) 31e) 3(3(72b 8e) 30e) 81e"


class LeakyBucket(Part):
    """One complex dead time of the trigger. ATLAS writes X/R for a bucket of X triggers from which
    one leaks every R crossings; its `window` is X · R."""

    triggers: int = Field(ge=1, le=1_000_000)
    """Capacity of the bucket, in triggers."""
    window: int = Field(ge=1, le=1_000_000_000)
    """Number of bunch crossings in which a full bucket drains, at a constant rate."""


class Lhc(Part):
    """[event.lhc]: the accelerator's bunch pattern and the trigger's dead times."""

    filling: Annotated[str, ASSUMED] = Field(
        default=NOMINAL_FILLING, min_length=1, max_length=10_000
    )
    """Filling scheme: run lengths of bunches (b) and empty crossings (e), with a number before a
    bracket for a repeated group, such as "3(72b 8e) 30e"; or a file with such a scheme; or the JSON
    (beam1, beam2: 3564 slots or 35640 buckets) or CSV (filled buckets) of the accelerator's tool,
    with the collision point: "scheme.json:IP8" (IP1, the default, IP2, IP5 or IP8). The pattern
    repeats for ever. Default: the nominal 2808 bunches in 3564 crossings (LHC Design Report, 25
    ns)."""
    bunch_spacing: Annotated[PositiveSeconds, ASSUMED] = Field(
        default=25e-9, ge=SHORTEST_BUNCH_SPACING_S, le=LONGEST_BUNCH_SPACING_S
    )
    """Time between two bunch crossings (s)."""
    simple_dead_time: Annotated[int, ASSUMED] = Field(default=4, ge=0, le=1_000_000_000)
    """Bunch crossings vetoed after each trigger."""
    complex_dead_time: tuple[LeakyBucket, ...] = items(16)
    """Leaky buckets, such as [{triggers = 15, window = 5550}]: while a bucket is full, crossings
    are vetoed."""

    _pattern: bytes = PrivateAttr(default=b"")

    @property
    def pattern(self) -> bytes:
        """One byte per bunch crossing in the filling scheme: 1 with colliding bunches, else 0."""
        return self._pattern

    @model_validator(mode="after")
    def _expand_filling(self, info: ValidationInfo) -> Self:
        folder = inputs.folder_of(info)
        self._pattern = pattern_of(self.filling, folder)
        if not is_scheme(self.filling):
            self.__dict__["filling"] = absolute_name(self.filling, folder)
        return self


class Group(Part):
    """A group of sources with equal mean fragment sizes."""

    sources: int = Field(ge=1, le=1_000_000)
    """Number of sources in the group."""
    share: Number
    """Share of the group in the event's size, relative to the shares of other groups."""


class Event(Part):
    """[event]: sizes, arrivals, and the share of every source."""

    size: Annotated[
        PositiveBytes,
        PULL,
        When(".size_distribution", ("fixed", "gaussian", "gamma", "poisson")),
        ASSUMED,
    ] = Field(default=5_000_000, le=inputs.LARGEST_SIZE_BYTES)
    """Mean payload of an event, the sum over all sources (B)."""
    size_distribution: Annotated[SizeDistribution, PULL] = "fixed"
    """Distribution of event sizes."""
    size_spread: Annotated[Number, When(".size_distribution", ("gaussian", "gamma")), ASSUMED] = (
        Field(default=0.2, le=10)
    )
    """Standard deviation of event sizes relative to their mean, for gaussian (at most 1/3) and
    gamma; an event has at least one byte."""
    size_quantum: Annotated[PositiveBytes, When(".size_distribution", ("poisson",)), ASSUMED] = (
        10_000
    )
    """Chunk of the poisson distribution: an event has a Poisson number of chunks of this size
    (B)."""
    size_histogram: Annotated[inputs.FileName, When(".size_distribution", ("histogram",))] = ""
    """File of the histogram distribution, relative to the scenario's folder. Each line has a size
    (B) and a weight, or the two edges of a bin and a weight; a bin counts with its middle, and bins
    must not overlap. A head line may name the unit, such as `size_kB,count`. `size` becomes the
    mean of the histogram."""
    fragment_size: Annotated[PositiveBytes, PACKED, ASSUMED] = 133
    """Mean size of a fragment, the data of one source for one event (B)."""
    fragment_sizes: Annotated[Literal["poisson", "fixed"], PACKED, ASSUMED] = "poisson"
    """Distribution of fragment sizes."""
    packing: Annotated[int, PACKED, ASSUMED] = Field(default=30_000, ge=1, le=10_000_000)
    """Packing factor: number of consecutive fragments of a source in one multi-fragment packet
    (MFP). The MFPs of all sources for the same events are a multi-event packet (MEP)."""
    groups: Annotated[tuple[Group, ...], PACKED] = items(64)
    """Groups of sources with larger and smaller fragments, in the order of the sources;
    `fragment_size` remains the mean over all sources."""
    rate: Annotated[
        FrequencyOrNone,
        BUILT,
        DefaultWith("building.protocol", {"pull": "12 kHz"}),
        Guess(when=(PULL, When(".arrivals", ("poisson", "deterministic", "lhc")))),
    ] = 0.0
    """Mean event rate; with lhc arrivals, the rate after dead time, or the highest rate that the
    dead times permit. "0 Hz" (not allowed for pull) means as fast as the event builder accepts
    events (Hz)."""
    arrivals: Annotated[Arrivals, PULL, ASSUMED] = "poisson"
    """Arrival times of events: random (poisson), evenly spaced (deterministic), at the LHC's bunch
    crossings with dead time (lhc), or from a file (trace)."""
    lhc: Annotated[Lhc, When(".arrivals", ("lhc",))] = Field(default_factory=Lhc)
    """Bunches and dead times, for arrivals = lhc."""
    trace: Annotated[inputs.FileName, When(".arrivals", ("trace",))] = ""
    """File of the trace arrivals: one arrival time in seconds a line, in ascending order, relative
    to the scenario's folder. `rate` becomes the mean rate of the file."""
    share: Annotated[Share, PULL] = "equal"
    """Share of each source in an event: equal, or a list with one weight per source."""

    _histogram: tuple[array[int], array[float]] | None = PrivateAttr(default=None)
    _trace: array[float] | None = PrivateAttr(default=None)

    @property
    def histogram(self) -> tuple[array[int], array[float]] | None:
        """Return sizes (B) and weights of `size_histogram`; None for another distribution."""
        return self._histogram

    @property
    def arrival_times(self) -> array[float] | None:
        """Return the arrival times (s) of `trace`; None for other arrivals."""
        return self._trace

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.size_distribution in ("gaussian", "gamma") and self.size_spread == 0:
            raise ValueError(
                'size_spread is zero; for constant sizes use size_distribution = "fixed"'
            )
        if self.size_distribution == "gaussian" and self.size_spread > WIDEST_GAUSSIAN:
            refusal = f"size_spread = {self.size_spread:g} makes many gaussian sizes negative"
            raise ValueError(f'{refusal}; use at most 1/3, or size_distribution = "gamma"')
        if self.size_distribution == "poisson" and self.size_quantum > self.size:
            raise ValueError(
                "size_quantum is larger than size; a poisson size is a number of whole chunks"
            )
        if self.size_distribution == "histogram":
            if not self.size_histogram:
                raise ValueError(
                    'size_distribution = "histogram" requires a file in size_histogram'
                )
            sizes, weights = self._histogram = inputs.histogram(Path(self.size_histogram))
            mean = sum(map(operator.mul, sizes, weights)) / sum(weights)
            self.__dict__["size"] = round(mean)
        if self.arrivals == "trace":
            if not self.trace:
                raise ValueError('arrivals = "trace" requires a file in trace')
            self._trace = inputs.trace(Path(self.trace))
            self.__dict__["rate"] = len(self._trace) / self._trace[-1]
        if self.arrivals == "lhc":
            filled = self.lhc.pattern.count(1) / len(self.lhc.pattern) / self.lhc.bunch_spacing
            if self.rate > filled:
                raise ValueError(
                    f"rate = {self.rate:g} Hz is more than the {filled:g} Hz of filled bunch "
                    "crossings in lhc.filling; lower the rate or fill more bunches"
                )
        return self

"""Counters from a service that lists named values with labels, one of which names the port."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Self, TypeVar

from pydantic import Field

from daqloom.base.words import did_you_mean
from daqloom.device.adapter import AdapterError, PortCount
from daqloom.device.credentials import Credentials
from daqloom_adapters.deadline import Deadline
from daqloom_adapters.http import HttpOptions

LARGEST_COUNT = (1 << 64) - 1
MOST_KNOWN = 1000
MOST_SHOWN = 5
Name = Annotated[str, Field(min_length=1, max_length=200)]


class SeriesOptions(HttpOptions):
    """Options of an adapter that reads named values. Several values of one port, such as those of
    its queues, are added up."""

    label: Name
    """Label that contains the name of the port."""
    sent: Name
    """Name of the packets that a port has sent."""
    sent_bytes: Name
    """Name of the bytes that a port has sent."""
    dropped: Name
    """Name of the packets that a port has dropped."""
    peak: str = Field(default="", max_length=200)
    """Name of the peak occupancy of a port (bytes); empty: no peaks. The peak is not reset; it is
    reported only if it rises during a measurement."""
    match: dict[Name, str] = Field(default_factory=dict, max_length=16)
    """Further labels, such as those of the switch, and the values that they must have."""

    @property
    def names(self) -> set[str]:
        """Names of all values that are read."""
        return {self.sent, self.sent_bytes, self.dropped, self.peak} - {""}


@dataclass(frozen=True)
class Sample:
    """A named value with its labels and time (s since 1970; None: now)."""

    name: str
    labels: Mapping[str, str]
    value: float
    time_s: float | None = None


OptionsT = TypeVar("OptionsT", bound=SeriesOptions)


class Series(ABC, Generic[OptionsT]):
    """Adapter that counts with the samples of `_samples`; `begin` and `read` request new ones."""

    def __init__(
        self, options: OptionsT, ports: Sequence[str], credentials: Credentials | None = None
    ) -> None:
        self._options, self._ports, self._credentials = options, ports, credentials
        self._peaks: Mapping[str, int] = {}

    def __enter__(self) -> Self:
        self._values(self._now())
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self) -> None:
        """Record the present peaks."""
        if self._options.peak:
            values = self._values(self._now())
            self._peaks = {port: max(values[port][self._options.peak]) for port in self._ports}

    def read(self) -> Mapping[str, PortCount]:
        """Return the counters of each port."""
        return self._counts(self._now())

    @property
    def _nothing(self) -> str:
        return f'no value has the label "{self._options.label}"'

    def _now(self) -> list[Sample]:
        """Return present samples, received within the timeout. Raises AdapterError."""
        try:
            return self._samples(Deadline(self._options.timeout))
        except TimeoutError:
            raise AdapterError(
                f"{self._options.where}: no whole answer was read within "
                f"{self._options.timeout:g} s; expected a server that is up, a shorter answer, or "
                "a longer timeout"
            ) from None

    @abstractmethod
    def _samples(self, ends: Deadline) -> list[Sample]:
        """Return the present samples. Raises AdapterError, and TimeoutError at the deadline."""

    def _matching(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the samples with the requested names, labels and ports. Raises AdapterError for a
        port without samples."""
        label, match = self._options.label, self._options.match.items()
        named = [
            sample
            for sample in samples
            if sample.name in self._options.names
            and label in sample.labels
            and match <= sample.labels.items()
        ]
        known = dict.fromkeys(sample.labels[label] for sample in named)
        for port in self._ports:
            if port not in known:
                names = [name[:100] for name in known if name.isprintable()][:MOST_KNOWN]
                shown = "known are " + ", ".join(names[:MOST_SHOWN]) if names else self._nothing
                raise AdapterError(
                    f"{self._options.where}: there is no port {port}; "
                    + did_you_mean(port, names, shown)
                )
        return [sample for sample in named if sample.labels[label] in self._ports]

    def _values(self, samples: Iterable[Sample]) -> Mapping[str, Mapping[str, list[int]]]:
        """Return each port's values by name. Raises AdapterError for a name without values."""
        found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for sample in self._matching(samples):
            port = sample.labels[self._options.label]
            found[port][sample.name].append(self._whole(sample.value, f"{sample.name} of {port}"))
        for port in self._ports:
            for name in sorted(self._options.names - set(found[port])):
                raise AdapterError(f"{self._options.where}: port {port} has no {name}")
        return found

    def _counts(self, samples: Iterable[Sample]) -> Mapping[str, PortCount]:
        values, options = self._values(samples), self._options
        return {
            port: PortCount(
                sum(values[port][options.sent]),
                sum(values[port][options.sent_bytes]),
                sum(values[port][options.dropped]),
                self._peak(port, values[port]),
            )
            for port in self._ports
        }

    def _peak(self, port: str, values: Mapping[str, list[int]]) -> int | None:
        if not self._options.peak:
            return None
        found = max(values[self._options.peak])
        return found if found > self._peaks.get(port, -1) else None

    def _whole(self, value: float, what: str) -> int:
        if 0 <= value <= LARGEST_COUNT and value == int(value):
            return int(value)
        shown = str(value) if isinstance(value, float) else "a huge or negative number"
        raise AdapterError(f"{self._options.where}: {what} is {shown}; expected a count from 0 on")

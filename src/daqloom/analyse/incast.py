"""The incast rule: BDP + buffer ≥ Σ windows."""

from collections.abc import Iterable
from dataclasses import dataclass

from daqloom.analyse.answer import Condition


@dataclass(frozen=True, slots=True)
class Incast:
    """The three terms of the rule for one bottleneck, and the buffer that it asks for."""

    windows_bytes: float
    bdp_bytes: float
    conditions: tuple[Condition, ...]

    @property
    def needed_bytes(self) -> float:
        """The smallest buffer without loss: Σ windows − BDP, at least 0."""
        return max(0.0, self.windows_bytes - self.bdp_bytes)

    def satisfied_by(self, buffer_bytes: float) -> bool:
        """Whether BDP + buffer ≥ Σ windows."""
        return self.bdp_bytes + buffer_bytes >= self.windows_bytes


def incast(
    windows_bytes: Iterable[float], input_bps: float, output_bps: float, rtt_s: float
) -> Incast:
    """BDP + buffer ≥ Σ window_i, the condition for a bottleneck to lose nothing.

    Source: lossless software switch slides, the condition under "TCP incast".

    `windows_bytes` is what each sender may have under way to the bottleneck, in bytes as buffered;
    `input_bps` and `output_bps` are the rates into and out of it, `rtt_s` the round trip without
    queues. Windows alone decide only where the output is the bottleneck.
    """
    return Incast(
        windows_bytes=sum(windows_bytes),
        bdp_bytes=output_bps / 8 * rtt_s,
        conditions=(
            Condition(
                "I > O",
                input_bps > output_bps,
                f"the builder's link, {output_bps / 1e9:.4g} Gb/s, has to be slower than the "
                f"input, {input_bps / 1e9:.4g} Gb/s",
            ),
        ),
    )

"""What every kind of system has in common, a rack or a fabric: names, length, seed, digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import Field

from daqloom.scenario.part import Part
from daqloom.scenario.quantities import TIME, PositiveSeconds, Seconds


class Run(Part):
    """[run]: how long, and with which random numbers."""

    duration: PositiveSeconds = Field(
        default=5.0, description="virtual time simulated, warm-up included (s)"
    )
    warmup: Seconds = Field(default=1.0, description="time at the start that no metric counts (s)")
    seed: int = Field(
        default=1, ge=0, lt=1 << 63, description="seed of all random streams; no unit"
    )


class System(Part):
    """An event-building system; a file of this shape is what every method takes.

    Values are SI numbers: whole bytes, bits per second, seconds, hertz.
    """

    name: str = Field(
        default="",
        max_length=64,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="short name in results; by default the file's name",
    )
    title: str = Field(default="", max_length=200, description="one line for lists")
    description: str = Field(default="", max_length=10_000, description="what the system is")
    run: Run = Field(default_factory=Run, description="length and seed")

    def content(self) -> dict[str, Any]:
        """All that bears on a result, as JSON has it: every key but name, title, description and
        seed; files by the digest of their content."""
        content = self.model_dump(mode="json", exclude={"name", "title", "description"})
        del content["run"]["seed"]
        return content

    def hash(self) -> str:
        """SHA-256 of `content`; the seed stands apart in results."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def with_overrides(self, overrides: Iterable[str] | Mapping[str, Any]) -> Self:
        """The same system with some keys changed.

        `overrides` are `["event.size=2 MB"]` or `{"event.size": "2 MB"}`. Raises ScenarioError.
        """
        from daqloom.scenario.load import override

        return override(self, overrides)

    def _check_run(self) -> None:
        if self.run.warmup >= self.run.duration:
            raise ValueError(
                f"run.warmup = {TIME.format(self.run.warmup)} leaves nothing of run.duration = "
                f"{TIME.format(self.run.duration)} to measure; shorten the one or lengthen the "
                "other"
            )

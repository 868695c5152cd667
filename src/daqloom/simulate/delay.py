"""Translates a distribution of times into the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.enumerations import named

if TYPE_CHECKING:
    from daqloom.scenario.distribution import Distribution


def set_delay(delay: _engine.Delay, time: Distribution) -> None:
    """Set the engine's delay to a distribution."""
    measured = time.measured
    if measured is not None:
        delay.set_measured(*measured)
        return
    delay.kind = named(_engine.DelayKind, time.kind)
    delay.mean_s = time.mean
    delay.spread_s = time.spread


def delay_of(time: Distribution) -> _engine.Delay:
    """Return the engine's delay with a distribution."""
    delay = _engine.Delay()
    set_delay(delay, time)
    return delay

"""The rules of a building protocol as the engine takes them, simulated and live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.enumerations import named

if TYPE_CHECKING:
    from daqloom.scenario.building import Building


def set_shift_rules(config: _engine.ShiftConfig | _engine.LiveConfig, building: Building) -> None:
    """Set the keys of `[building]` for linear shifting."""
    config.change = named(_engine.PhaseChange, building.change)
    config.barrier = named(_engine.ShiftBarrier, building.barrier)
    config.meps_per_phase = building.meps_per_phase
    config.phases_per_barrier = building.phases_per_barrier
    config.phases_under_way = building.phases_under_way
    config.keeps_dummies = building.dummy_phases == "kept"
    config.window_s = building.window
    config.grace_s = building.grace


def set_daqpipe_rules(
    config: _engine.DaqpipeConfig | _engine.LiveConfig, building: Building
) -> None:
    """Set the keys of `[building]` for DAQPIPE."""
    config.is_push = building.mode == "push"
    config.credits = building.credits
    config.parallel_sends = building.parallel_sends
    config.slot_s = building.slot

"""How many frames a second the switch forwards without loss on this machine, by MLRsearch
(draft-ietf-bmwg-mlrsearch): trials at loads that a search chooses, until the highest load is known
at which at least half of the trials lose nothing.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

from daqloom._switch import Trials
from daqloom.measure import MeasureError
from daqloom.scenario.links import WIRE_OVERHEAD_BYTES
from daqloom.softswitch.energy import Energy

STRETCHED = 0.001
"""Share by which what was sent may differ from what was to be sent, or a trial is not one."""
MOST_REPEATS = 5
"""Trials at a load that are repeated as they were not what was asked for."""
LEAST_HZ, MOST_HZ = 10_000.0, 200e6
TRIAL_S = 0.5
"""Length of a trial (s)."""


@dataclass
class Trial:
    """A trial and what came of it."""

    load_hz: float
    offered: int
    missed: int
    forwarded: int
    rejected: bool
    """What was sent differed from what was to be sent by more than a thousandth."""


SOAK_SHARE = 0.9
"""Of the loss-free rate, at which a long trial has to lose nothing."""
SAYS_EVERY_S = 20.0
"""How often a long trial says how far it is (s)."""
CHANGE_EVERY_S = 1.0
"""How often it changes the paces of all rings (s)."""


@dataclass
class Soak:
    """A long trial below the loss-free rate, with paces changed under way."""

    load_hz: float
    duration_s: float
    changes: int
    """Times that all rings got another pace."""
    offered: int
    missed: int
    forwarded: int
    rejected: bool
    """What was sent differed from what was to be sent by more than a thousandth."""
    power_w: float | None = None
    """Mean power of all processor packages (W); None: this machine does not count it."""

    @property
    def lost(self) -> int:
        """Frames that did not come back."""
        return self.offered - self.forwarded


@dataclass
class Throughput:
    """The result of a search."""

    frame_bytes: int
    loss_ratio: float
    forwarded_hz: float
    """Frames forwarded a second at the highest load with at most that loss, the conditional
    throughput of the draft; 0: there is no such load."""
    trials: list[Trial] = field(default_factory=list)
    soak: Soak | None = None

    @property
    def wire_bps(self) -> float:
        """Bits a second on the wire, preambles and gaps included."""
        return 8 * (self.frame_bytes + WIRE_OVERHEAD_BYTES) * self.forwarded_hz

    def document(self) -> dict[str, Any]:
        """Return the result as JSON has it."""
        return {
            "schema": 1,
            "method": "MLRsearch, draft-ietf-bmwg-mlrsearch",
            "frame_bytes": self.frame_bytes,
            "loss_ratio": self.loss_ratio,
            "frame_rate_hz": self.forwarded_hz,
            "wire_rate_bps": self.wire_bps,
            "trials": [vars(trial) for trial in self.trials],
            "soak": None if self.soak is None else vars(self.soak),
        }


def soak(
    rig: Trials,
    loss_free_hz: float,
    seconds: float,
    said: Callable[[float], None] = lambda seconds: None,
) -> Soak:
    """Run a long trial at 90 % of the loss-free rate. `said`: is told now and then how long it has
    run. Ctrl-C ends it early."""
    load_hz = SOAK_SHARE * loss_free_hz
    begin_s = time.monotonic()
    energy = Energy()
    # The engine is deaf to signals as long as it runs: this thread hears them.
    with ThreadPoolExecutor(1) as thread:
        trial = thread.submit(rig.run, load_hz, seconds, CHANGE_EVERY_S)
        try:
            while not wait([trial], SAYS_EVERY_S).done:
                energy.read()
                said(time.monotonic() - begin_s)
        except KeyboardInterrupt:
            rig.stop()
    result = trial.result()
    power_w = energy.power_w()
    return Soak(
        load_hz=load_hz,
        duration_s=result.duration_s,
        changes=result.changes,
        offered=result.offered,
        missed=result.missed,
        forwarded=result.forwarded,
        rejected=_differs(result),
        power_w=power_w,
    )


def _differs(result: Any) -> bool:
    return bool(abs(result.offered - result.intended) > STRETCHED * result.intended)


Run = Callable[[float, float], Any]
"""Runs a trial: frames a second, length (s) → a result of the engine."""


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    def __init__(self, run: Run, found: Throughput, said: Callable[[Trial], None]) -> None:
        self._run, self._found, self._said = run, found, said

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run a trial until it is the one that was asked for."""
        for _ in range(MOST_REPEATS):
            result = self._run(intended_load, intended_duration)
            differs = _differs(result)
            trial = Trial(intended_load, result.offered, result.missed, result.forwarded, differs)
            self._found.trials.append(trial)
            self._said(trial)
            if not differs:
                break
        # A trial that was never as asked for counts what was not sent as lost.
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=result.intended,
            offered_count=result.offered,
            forwarding_count=result.forwarded,
            offered_duration=result.duration_s,
        )


def search(
    run: Run,
    frame_bytes: int,
    *,
    loss_ratio: float = 0.0,
    seconds: float = 60.0,
    width: float = 0.02,
    said: Callable[[Trial], None] = lambda trial: None,
) -> Throughput:
    """Search the highest load with at most `loss_ratio`, to within `width` of it, in about
    `seconds`."""
    found = Throughput(frame_bytes, loss_ratio, 0.0)
    goal = SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=0.5,
        relative_width=width,
        initial_trial_duration=TRIAL_S,
        final_trial_duration=TRIAL_S,
        duration_sum=max(TRIAL_S, min(21.0, seconds / 10)),
        preceding_targets=2,
        expansion_coefficient=2,
        fail_fast=False,
    )
    config = Config()
    config.goals = [goal]
    config.max_load, config.min_load = MOST_HZ, LEAST_HZ
    config.search_duration_max = 120 + 20 * seconds  # on a busy machine trials are repeated
    config.warmup_duration = TRIAL_S
    try:
        result = MultipleLossRatioSearch(config).search(_Measurer(run, found, said))
    except RuntimeError as error:
        raise MeasureError(f"the search of the loss-free rate does not end: {error}") from None
    best = result[goal]
    throughput = None if best is None else best.conditional_throughput
    found.forwarded_hz = 0.0 if throughput is None else float(throughput)
    return found

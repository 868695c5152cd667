"""How many frames a second the switch forwards without loss on this machine, by MLRsearch
(draft-ietf-bmwg-mlrsearch): trials at loads that a search chooses, until the highest load is known
at which at least half of the trials lose nothing. A search whose time is up, or whose trials lose
frames while the machine takes the cores away, ends with a lower bound.
"""

import os
import time
from collections import Counter
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
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.links import WIRE_OVERHEAD_BYTES
from daqloom.softswitch.energy import Energy

STRETCHED = 0.001
"""Share by which what was sent may differ from what was to be sent, or a trial is not one."""
MOST_REPEATS = 3
"""Trials at a load, if they are not what was asked for."""
MOST_INVALID = 20
"""Trials that are not valid after which a search gives up where they are more than half of all."""
CAN_SEND = 0.9
"""Share of the highest rate that the generator has reached up to which it can send any load: it was
held up where it did not."""
AWAY_LOSS = 2.0
"""Share of the frames due while a core was taken away up to which a loss is due to that: those of
the time itself, and as many while the switch catches up."""
MOST_AWAY = 0.01
"""Share of a trial's time for which cores may be taken away, or its loss proves no limit."""
LEAST_HZ, MOST_HZ = 10_000.0, 200e6
TRIAL_S, SHORTEST_TRIAL_S = 0.5, 0.02
"""Length of a trial (s), and the shortest one of a short search."""
TRIALS = 40
"""Trials that fit into the time of a search, about."""


@dataclass
class Trial:
    """A trial and what came of it."""

    load_hz: float
    intended: int
    offered: int
    missed: int
    forwarded: int
    rejected: bool
    """What was sent differed from what was to be sent by more than a thousandth."""
    was_held_up: bool
    """Whether it lost frames, or was rejected, because a core was taken away."""
    forwarded_hz: float
    duration_s: float
    away_s: float
    """Time in which the switch or the generator did not run, both together."""

    @property
    def proves_a_limit(self) -> bool:
        """Whether its loss is that of a switch that had its core."""
        return not self.was_held_up and self.away_s <= MOST_AWAY * self.duration_s


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
    away_s: float
    """Time in which the switch or the generator did not run, both together."""
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
    is_lower_bound: bool = False
    """Whether the search ended before the highest load was known, or cores were taken away in the
    trials that it rests on."""
    is_busy: bool = False
    """Whether it is a lower bound because cores were taken away."""
    load_average: float = 0.0
    """Threads of this machine that ran or waited for a core in the minute before (getloadavg)."""

    @property
    def away_share(self) -> float:
        """Share of the trials' time for which the cores of switch and generator were taken away."""
        time_s = 2 * sum(trial.duration_s for trial in self.trials)
        return sum(trial.away_s for trial in self.trials) / time_s if time_s else 0.0

    @property
    def reason(self) -> str:
        """Why the result is a lower bound; empty: it is none."""
        if not self.is_lower_bound:
            return ""
        if not self.is_busy:
            return "the time was up: a lower bound"
        held_up = sum(not trial.proves_a_limit for trial in self.trials)
        return (
            f"{held_up} of {len(self.trials)} trials prove no limit because this machine was busy "
            f"(cores taken away for {self.away_share:.1%} of the time, load average "
            f"{self.load_average:.1f} on {os.cpu_count()} cores): a lower bound"
        )

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
            "is_lower_bound": self.is_lower_bound,
            "reason": self.reason,
            "load_average": self.load_average,
            "cores_away_share": self.away_share,
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
        away_s=result.away_s,
        power_w=power_w,
    )


def _differs(result: Any) -> bool:
    return bool(abs(result.offered - result.intended) > STRETCHED * result.intended)


def _is_lost_by_pauses(result: Any, load_hz: float) -> bool:
    """Return whether frames were lost, no more than pauses of the cores explain."""
    lost = result.intended - result.forwarded
    return bool(0 < lost <= AWAY_LOSS * load_hz * result.away_s)


Run = Callable[[float, float], Any]
"""Runs a trial: frames a second, length (s) → a result of the engine."""


class _EndedError(Exception):
    """The search ends before it is done."""


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    def __init__(
        self,
        run: Run,
        found: Throughput,
        said: Callable[[Trial], None],
        is_time: Callable[[], bool],
    ) -> None:
        self._run, self._found, self._said, self._is_time = run, found, said, is_time
        self._most_hz = 0.0
        """Highest rate that the generator has reached."""
        self.counted: list[Trial] = []
        """Trials that the search knows: the last at its load of those in a row."""

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run a trial until it is the one that was asked for. Raises _EndedError."""
        for _ in range(MOST_REPEATS):
            held_up = sum(trial.was_held_up for trial in self._found.trials)
            if not self._is_time() or held_up >= max(MOST_INVALID, len(self._found.trials) / 2):
                raise _EndedError
            result = self._run(intended_load, intended_duration)
            self._most_hz = max(self._most_hz, result.offered / max(1e-9, result.duration_s))
            differs = _differs(result)
            is_held_up = differs and intended_load < CAN_SEND * self._most_hz
            trial = Trial(
                intended_load,
                result.intended,
                result.offered,
                result.missed,
                result.forwarded,
                rejected=differs,
                was_held_up=is_held_up or _is_lost_by_pauses(result, intended_load),
                forwarded_hz=result.forwarded / max(1e-9, result.duration_s),
                duration_s=result.duration_s,
                away_s=result.away_s,
            )
            self._found.trials.append(trial)
            self._said(trial)
            if not trial.was_held_up:
                break
        self.counted.append(trial)
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
    clock: Callable[[], float] = time.monotonic,
) -> Throughput:
    """Search the highest load with at most `loss_ratio`, to within `width` of it, in `seconds` at
    most. `said`: called after each trial. Raises MeasureError."""
    found = Throughput(frame_bytes, loss_ratio, 0.0, load_average=os.getloadavg()[0])
    trial_s = min(TRIAL_S, max(SHORTEST_TRIAL_S, seconds / TRIALS))
    goal = SearchGoal(
        loss_ratio=loss_ratio,
        exceed_ratio=0.5,
        relative_width=width,
        initial_trial_duration=trial_s,
        final_trial_duration=trial_s,
        duration_sum=max(trial_s, min(21.0, seconds / 10)),
        preceding_targets=2,
        expansion_coefficient=2,
        fail_fast=False,
    )
    config = Config()
    config.goals = [goal]
    config.max_load, config.min_load = MOST_HZ, LEAST_HZ
    config.search_duration_max = 120 + 20 * seconds  # it ends before that
    config.warmup_duration = trial_s
    end_s = clock() + seconds
    measurer = _Measurer(run, found, said, lambda: clock() + trial_s <= end_s)
    try:
        result = MultipleLossRatioSearch(config).search(measurer)
    except _EndedError:
        proving = sum(trial.proves_a_limit for trial in found.trials)
        found.is_lower_bound = True
        found.is_busy = 2 * proving < len(found.trials) or found.away_share > MOST_AWAY
        found.forwarded_hz = _lower_bound_hz(found)
        return found
    except RuntimeError as error:
        raise MeasureError(f"the search of the loss-free rate does not end: {error}") from None
    best = result[goal]
    throughput = None if best is None else best.conditional_throughput
    found.forwarded_hz = 0.0 if throughput is None else float(throughput)
    if best is not None and not _is_proven(best, measurer.counted, loss_ratio):
        found.is_lower_bound = found.is_busy = True
        found.forwarded_hz = max(found.forwarded_hz, _lower_bound_hz(found))
    return found


def _is_proven(best: Any, counted: list[Trial], loss_ratio: float) -> bool:
    """Return whether, of the trials that lost frames and decided on a bound, most prove a limit:
    those that lost too many at the upper bound, those that passed at the lower one."""
    bounds = ((best.relevant_lower_bound, True), (best.relevant_upper_bound, False))
    for bound, passes in bounds:
        lossy = [
            trial
            for trial in counted
            if bound is not None
            and trial.load_hz == float(bound)
            and trial.forwarded < trial.intended
            and passes == (trial.forwarded >= (1 - loss_ratio) * trial.intended)
        ]
        if 2 * sum(trial.proves_a_limit for trial in lossy) < len(lossy):
            return False
    return True


def _lower_bound_hz(found: Throughput) -> float:
    """Return the most that was forwarded at a load at which at least half of the trials lost no
    more than they may of what was sent, be it less than was asked for. Trials that were held up and
    lost more do not count."""
    passed_hz: dict[float, list[float]] = {}
    failed: Counter[float] = Counter()
    for trial in found.trials:
        if trial.forwarded >= (1 - found.loss_ratio) * trial.offered:
            passed_hz.setdefault(trial.load_hz, []).append(trial.forwarded_hz)
        else:
            failed[trial.load_hz] += not trial.was_held_up
    best_hz = 0.0
    for load_hz, passed in passed_hz.items():
        if len(passed) >= failed[load_hz]:
            best_hz = max(best_hz, min(passed))
    return best_hz

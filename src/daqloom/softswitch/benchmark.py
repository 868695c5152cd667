"""Loss-free throughput of the switch on this machine, by MLRsearch (draft-ietf-bmwg-mlrsearch):
trials at chosen loads find the highest load at which at least half of the trials lose nothing. The
result is a lower bound if the time is up, or if trials lose frames because the operating system
takes cores away."""

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
"""Limit on the relative difference between sent and intended frames in a valid trial."""
MOST_REPEATS = 3
"""Limit on trials at one load, while they are invalid."""
MOST_INVALID = 20
"""Invalid trials after which a search ends early, if they are more than half of all trials."""
CAN_SEND = 0.9
"""Share of the generator's highest rate below which only pauses can delay its frames."""
AWAY_LOSS = 2.0
"""Largest loss that pauses of a core explain, in frames of the pauses' length: the frames of the
pause, and as many while the switch catches up."""
MOST_AWAY = 0.01
"""Largest share of a trial without cores at which the trial's loss still proves a limit."""
LEAST_HZ, MOST_HZ = 10_000.0, 200e6
TRIAL_S, SHORTEST_TRIAL_S = 0.5, 0.02
"""Length of a trial (s), and the shortest length, used in a short search."""
TRIALS = 40
"""Approximate number of trials in a search."""


@dataclass(kw_only=True)
class Outcome:
    """Frame counts and times of a trial."""

    load_hz: float
    duration_s: float
    offered: int
    missed: int
    forwarded: int
    rejected: bool
    """Whether the numbers of sent and intended frames differed by more than a thousandth."""
    away_s: float
    """Total time in which the switch or the generator had no core (s)."""


@dataclass(kw_only=True)
class Trial(Outcome):
    """A trial of a search."""

    intended: int
    was_held_up: bool
    """Whether frames were lost or unsent because a core was taken away."""
    forwarded_hz: float

    @property
    def proves_a_limit(self) -> bool:
        """Whether its loss is due to the switch, and not to missing cores."""
        return not self.was_held_up and self.away_s <= MOST_AWAY * self.duration_s


SOAK_SHARE = 0.9
"""Share of the loss-free rate at which a long trial must not lose any frame."""
PROGRESS_S = 20.0
"""Period of progress reports in a long trial (s)."""
CHANGE_EVERY_S = 1.0
"""Period at which a long trial changes all paces (s)."""


@dataclass(kw_only=True)
class Soak(Outcome):
    """A long trial below the loss-free rate, with changes of all paces."""

    changes: int
    """Number of changes of all paces."""
    power_w: float | None = None
    """Mean power of all processor packages (W); None: this machine has no counter."""

    @property
    def lost(self) -> int:
        """Number of lost frames."""
        return self.offered - self.forwarded


@dataclass
class Throughput:
    """Result of a search."""

    frame_bytes: int
    loss_ratio: float
    forwarded_hz: float
    """Frames forwarded per second at the highest load with at most `loss_ratio` (the draft's
    conditional throughput); 0: no such load."""
    trials: list[Trial] = field(default_factory=list)
    soak: Soak | None = None
    is_lower_bound: bool = False
    """Whether the search ended early, or cores were taken away in the trials that decide."""
    is_busy: bool = False
    """Whether the result is a lower bound because cores were taken away."""
    load_average: float = 0.0
    """Mean number of threads that ran or waited for a core in the minute before (getloadavg)."""

    @property
    def away_share(self) -> float:
        """Share of the trials' time in which the switch or the generator had no core."""
        time_s = 2 * sum(trial.duration_s for trial in self.trials)
        return sum(trial.away_s for trial in self.trials) / time_s if time_s else 0.0

    @property
    def reason(self) -> str:
        """Reason why the result is a lower bound; empty for an exact result."""
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
        """Rate on the wire (b/s), including preambles and gaps."""
        return 8 * (self.frame_bytes + WIRE_OVERHEAD_BYTES) * self.forwarded_hz

    def document(self) -> dict[str, Any]:
        """Return the result for JSON."""
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
    progress: Callable[[float], None] = lambda seconds: None,
) -> Soak:
    """Run a long trial at 90 % of the loss-free rate. `progress` is called with the elapsed time
    (s). Ctrl-C ends the trial early."""
    load_hz = SOAK_SHARE * loss_free_hz
    begin_s = time.monotonic()
    energy = Energy()
    # The engine does not handle signals while it runs; this thread does.
    with ThreadPoolExecutor(1) as thread:
        trial = thread.submit(rig.run, load_hz, seconds, CHANGE_EVERY_S)
        try:
            while not wait([trial], PROGRESS_S).done:
                energy.read()
                progress(time.monotonic() - begin_s)
        except KeyboardInterrupt:
            rig.stop()
    result = trial.result()
    outcome = _outcome(result, load_hz)
    return Soak(**outcome, changes=result.changes, power_w=energy.power_w())


def _outcome(result: Any, load_hz: float) -> dict[str, Any]:
    """Return the values of `Outcome` fields that a result of the engine has."""
    names = ("duration_s", "offered", "missed", "forwarded", "away_s")
    found = {name: getattr(result, name) for name in names}
    return {"load_hz": load_hz, "rejected": _differs(result), **found}


def _differs(result: Any) -> bool:
    return bool(abs(result.offered - result.intended) > STRETCHED * result.intended)


def _is_lost_by_pauses(result: Any, load_hz: float) -> bool:
    """Return whether pauses of the cores alone explain the lost frames."""
    lost = result.intended - result.forwarded
    return bool(0 < lost <= AWAY_LOSS * load_hz * result.away_s)


Run = Callable[[float, float], Any]
"""Runner of a trial: frames per second, length (s) → a result of the engine."""


class _EndedError(Exception):
    """Raised inside a search to end it early."""


class _Measurer(AbstractMeasurer):  # type: ignore[misc]
    def __init__(
        self,
        run: Run,
        found: Throughput,
        on_trial: Callable[[Trial], None],
        is_time: Callable[[], bool],
    ) -> None:
        self._run, self._found, self._on_trial, self._is_time = run, found, on_trial, is_time
        self._most_hz = 0.0
        """Highest rate of the generator."""
        self.counted: list[Trial] = []
        """Trials that the search uses: the last one of each row at a load."""

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        """Run trials until one is valid. Raises _EndedError."""
        for _ in range(MOST_REPEATS):
            held_up = sum(trial.was_held_up for trial in self._found.trials)
            if not self._is_time() or held_up >= max(MOST_INVALID, len(self._found.trials) / 2):
                raise _EndedError
            result = self._run(intended_load, intended_duration)
            self._most_hz = max(self._most_hz, result.offered / max(1e-9, result.duration_s))
            is_held_up = _differs(result) and intended_load < CAN_SEND * self._most_hz
            trial = Trial(
                **_outcome(result, intended_load),
                intended=result.intended,
                was_held_up=is_held_up or _is_lost_by_pauses(result, intended_load),
                forwarded_hz=result.forwarded / max(1e-9, result.duration_s),
            )
            self._found.trials.append(trial)
            self._on_trial(trial)
            if not trial.was_held_up:
                break
        self.counted.append(trial)
        # In an invalid trial, unsent frames count as lost.
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
    on_trial: Callable[[Trial], None] = lambda trial: None,
    clock: Callable[[], float] = time.monotonic,
) -> Throughput:
    """Search the highest load with at most `loss_ratio`, to a relative precision of `width`, in at
    most `seconds`. `on_trial` is called after each trial. Raises MeasureError."""
    total = Throughput(frame_bytes, loss_ratio, 0.0, load_average=os.getloadavg()[0])
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
    config.search_duration_max = 120 + 20 * seconds  # never reached
    config.warmup_duration = trial_s
    end_s = clock() + seconds
    measurer = _Measurer(run, total, on_trial, lambda: clock() + trial_s <= end_s)
    try:
        result = MultipleLossRatioSearch(config).search(measurer)
    except _EndedError:
        proving = sum(trial.proves_a_limit for trial in total.trials)
        total.is_lower_bound = True
        total.is_busy = 2 * proving < len(total.trials) or total.away_share > MOST_AWAY
        total.forwarded_hz = _lower_bound_hz(total)
        return total
    except RuntimeError as error:
        raise MeasureError(f"the search of the loss-free rate does not end: {error}") from None
    best = result[goal]
    throughput = None if best is None else best.conditional_throughput
    total.forwarded_hz = 0.0 if throughput is None else float(throughput)
    if best is not None and not _is_proven(best, measurer.counted, loss_ratio):
        total.is_lower_bound = total.is_busy = True
        total.forwarded_hz = max(total.forwarded_hz, _lower_bound_hz(total))
    return total


def _is_proven(best: Any, counted: list[Trial], loss_ratio: float) -> bool:
    """Return whether most of the lossy trials that decided on a bound prove a limit: failed trials
    at the upper bound, and passed trials at the lower bound."""
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
    """Return the highest forwarded rate at a load where at least half of the trials lost at most
    `loss_ratio` of the sent frames; failed trials do not count if a core was taken away."""
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

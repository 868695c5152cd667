"""Ring of nodes simulated by the engine, which other closed forms do not load."""

from daqloom import _engine
from daqloom.analyse.fabric.slowest import Times
from daqloom.configuration.settings import engine_delay, settings
from daqloom.scenario.schema.distribution import Distribution

FIFTHS = 5


def shares_by_fifth(
    work_s: Times,
    deviation_s: float,
    delays: list[tuple[Distribution, float]],
    certain_s: float,
    writers: int,
    time_s: float,
) -> list[float]:
    """Return the share of the full rate in each fifth of `time_s`; all nodes begin in step.
    `work_s`, shape (nodes,), is the mean time of a transfer alone at a builder, `deviation_s` its
    standard deviation. `delays`, each with a factor, and `certain_s` pass before each transfer.
    `writers` limits the writers that a builder serves at a time; 0: no limit."""
    config = settings(
        _engine.NodeRingConfig,
        work=[_around(mean_s, deviation_s) for mean_s in work_s.tolist()],
        delays=[*(_stretch(delay, factor) for delay, factor in delays), _around(certain_s, 0.0)],
        writers=writers,
        in_step=False,
        duration_s=time_s,
        bins=FIFTHS,
        seed=1,
    )
    return _engine.play_node_ring(config).shares


def _around(mean_s: float, deviation_s: float) -> _engine.Delay:
    kind = _engine.DelayKind.gaussian if deviation_s else _engine.DelayKind.fixed
    return _engine.Delay(kind=kind, mean_s=mean_s, spread_s=deviation_s)


def _stretch(time: Distribution, factor: float) -> _engine.Delay:
    delay = engine_delay(_engine.Delay, time)
    if time.measured_times is None:
        delay.mean_s *= factor
        delay.spread_s *= factor
    else:
        values_s, counts = time.measured_times
        delay.set_measured([factor * value_s for value_s in values_s], counts)
    return delay

"""Whether a laboratory measured its network, or this machine's processors."""

from pathlib import Path

from daqloom.measure.lab.laboratory import LabCount

MOST_PRESSURE = 0.8
"""Share of time in which some process waited for a core, up to which a network is measured."""
MOST_LATENESS = 0.1
"""Share of time by which timers were later than a bucket of the slowest port lasts."""
_PRESSURE = Path("/proc/pressure/cpu")


def pressure_s() -> float | None:
    """Return for how long some process has waited for a core since this machine started (s); None
    where its kernel does not tell."""
    try:
        line = _PRESSURE.read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def host_metrics(count: LabCount, waited_s: float | None) -> dict[str, float]:
    """Return how busy this machine was while `count` was taken; `waited_s` is the time in which
    some process waited for a core meanwhile."""
    if not count.watched_s:
        return {}
    found = {"host_lateness": min(1.0, count.late_s / count.watched_s)}
    if waited_s is not None:
        found["host_pressure"] = min(1.0, waited_s / count.watched_s)
    return found


def why_invalid(found: dict[str, float]) -> str:
    """Return a sentence on why the numbers of a laboratory are not those of its network; empty
    where they are."""
    pressure, lateness = found.get("host_pressure", 0.0), found.get("host_lateness", 0.0)
    what = ""
    if pressure > MOST_PRESSURE:
        what = f"some process waited for a core {pressure:.0%} of the time, more than the "
        what += f"{MOST_PRESSURE:.0%} at which ports still keep their rates"
    elif lateness > MOST_LATENESS:
        what = f"timers were late for {lateness:.0%} of the time by more than a port's token "
        what += f"bucket lasts, and {MOST_LATENESS:.0%} is the most"
    if not what:
        return ""
    return (
        f"not a valid measurement of the network, as the processors were the limit: {what}; lower "
        "the rates of links and events, or let nothing else run here"
    )

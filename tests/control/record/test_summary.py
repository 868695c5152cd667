"""Sums of a run from counters that the test sets."""

from types import SimpleNamespace

from daqloom._engine import Balance, Counters
from daqloom.control.counters.metrics import Part
from daqloom.control.record.summary import sums


def test_events_that_were_not_written_are_lost_events_of_a_run_that_goes_on() -> None:
    counters = {"meps_built": 20, "meps_delivered": 20, "meps_processed": 18, "meps_not_written": 3}
    counted = {unit: Counters(counters) for unit in (0, 1)}
    units = [SimpleNamespace(tally=SimpleNamespace(totals=each)) for each in counted.values()]
    run = SimpleNamespace(units=units, failure="", counts={"units_lost": 0, "regroupings": 0})
    part = Part(10, counted, Balance(unfinished=0, skipped=0, twice=0))
    # Two units with 3 MEPs of 10 events each; MEPs that wait for the sink are not lost.
    assert sums(run, parts=[part], sink="file").lost == {"not_written": 60}
    ended = sums(run, parts=[part], sink="file", state="ended").lost
    assert ended == {"not_written": 60, "not_processed": 40}

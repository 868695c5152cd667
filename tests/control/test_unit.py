"""Reports of a unit's process to the run control."""

import itertools
import queue
from collections.abc import Sequence
from typing import Any

from daqloom._engine import Counters, Tally
from daqloom.control.protocol.messages import Answer, Heartbeat, read_report
from daqloom.control.unit import Unit, _reports
from support.measure.live_nodes import configure


class CountingNode:
    """Has built one MEP more at each reading."""

    def __init__(self) -> None:
        self.meps = itertools.count(1)

    def counters(self) -> Counters:
        built = next(self.meps)
        return Counters({"meps_built": built, "elapsed_s": 0.1 * built})

    def suspects(self) -> Sequence[int]:
        return []

    def shut(self) -> None:
        pass


def test_an_answer_that_waits_behind_a_heartbeat_does_not_count_twice():
    unit = Unit(b"token", lambda *_: CountingNode(), "control")
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    reports = _reports(unit, 0, answers)
    next(reports)  # hello
    answer = unit.obey(configure(heartbeat_s=1e-3))
    heard = [read_report(next(reports)) for _ in range(3)]  # before it gets into the queue
    answers.put(answer)
    heard.append(read_report(next(reports)))
    tally = Tally()
    for report in heard:
        assert isinstance(report, Heartbeat | Answer)
        assert not tally.begins_anew(report.engine_counters), "what has been read goes back"
        tally.read(report.engine_counters)
    assert isinstance(heard[-1], Answer)
    assert tally.totals.meps_built == 4

"""Failures of links: paired changes, merged flaps, and failures outside test periods."""

from daqloom.faults.logs.change import Change, LogContent, Outage, Port
from daqloom.faults.logs.clock import Calendar
from daqloom.faults.statistics.failure import (
    Failure,
    Period,
    failures_of,
    merge,
    outside,
    time_without,
    union,
)
from daqloom.faults.statistics.links import Links
from daqloom.topology.shapes.clos import folded_clos


def test_a_failure_lasts_from_down_to_up_or_as_an_outage() -> None:
    log, calendar = LogContent(), Calendar(1970)
    for at_s, node, is_up in ((1, "a", False), (2, "b", False), (4, "a", True)):
        log.changes.append(Change(at_s, Port(node, "1"), is_up))
        log.cover(at_s, calendar)
    found = failures_of(log, Links())
    assert found.failures == (Failure(1, 4, "a port 1"), Failure(2, None, "b port 1"))
    assert found.observed == Period(1, 4)
    log = LogContent(outages=[Outage(5, 7, Port("a", ""), "dirty"), Outage(1, None, Port("b", ""))])
    expected = Failure(1, None, "b"), Failure(5, 7, "a", "dirty")
    assert failures_of(log, Links()).failures == expected


def test_reports_of_both_ends_are_one_failure() -> None:
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    log = LogContent()
    for at_s, port, is_up in (
        (1, Port("leaf00", "3"), False),
        (1.1, Port("spine00", "1"), False),
        (5, Port("spine00", "1"), True),
        (5.2, Port("LEAF00", "3"), True),
        (6, Port("leaf9", "1"), False),
    ):
        log.changes.append(Change(at_s, port, is_up))
    found = failures_of(log, Links(fabric))
    assert [(f.begin_s, f.end_s) for f in found.failures] == [(1, 5)]
    assert found.failures[0].link == "leaf00 port 3 - spine00 port 1"
    assert found.unpaired == {"down twice": 1, "up twice": 1, "unknown port": 1}


def test_failures_within_the_gap_are_merged_and_those_in_tests_left_out() -> None:
    apart = [Failure(0, 1, "a", "x"), Failure(3, 4, "a"), Failure(4.5, 9, "b"), Failure(7, 8, "a")]
    assert merge(apart, 2) == (
        Failure(0, 4, "a", "x", 2), Failure(4.5, 9, "b"), Failure(7, 8, "a"),
    )  # fmt: skip
    assert merge(apart, 3)[0] == Failure(0, 8, "a", "x", 3)
    assert merge([Failure(0, None, "a"), Failure(5, 6, "a")], 0) == (Failure(0, None, "a", "", 2),)
    tests = [Period(10, 20), Period(15, 30), Period(50, 60)]
    begins = (5, 10, 19, 29.9, 30, 55, 60)
    real = outside([Failure(at, at + 1, "a") for at in begins], tests)
    assert [failure.begin_s for failure in real] == [5, 30, 60]
    apart = union(tests)
    assert apart == [Period(10, 30), Period(50, 60)]
    stopped = [time_without(at, apart) for at in (5, 10, 20, 30, 55, 70)]
    assert stopped == [5, 10, 10, 10, 30, 40]

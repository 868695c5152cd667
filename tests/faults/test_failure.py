"""Failures of links, from what a log says: paired, merged, and outside of tests."""

from __future__ import annotations

from daqloom.faults.change import Change, Outage, Port, Told
from daqloom.faults.failure import (
    Failure,
    Period,
    failures_of,
    joined,
    merged,
    outside,
    time_without,
)
from daqloom.faults.links import Links
from daqloom.topology.shapes.clos import folded_clos


def told(*changes: tuple[float, str, str]) -> Told:
    found = Told()
    for at_s, node, state in changes:
        found.changes.append(Change(at_s, Port(node, "1"), state == "up"))
        found.seen(at_s)
    return found


def test_a_failure_lasts_from_down_to_up() -> None:
    found = failures_of(told((1, "a", "down"), (2, "b", "down"), (4, "a", "up")), Links())
    assert found.failures == (Failure(1, 4, "a port 1"), Failure(2, None, "b port 1"))
    assert found.observed == Period(1, 4)


def test_both_ends_of_a_cable_tell_one_failure() -> None:
    fabric = folded_clos("tree", leaves=2, spines=1, hosts_per_leaf=2, rate_bps=10**11)
    log = Told()
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


def test_failures_told_as_a_whole_count_as_they_are() -> None:
    log = Told(outages=[Outage(5, 7, Port("a", ""), "dirty"), Outage(1, None, Port("b", ""))])
    assert failures_of(log, Links()).failures == (
        Failure(1, None, "b"),
        Failure(5, 7, "a", "dirty"),
    )


def test_of_a_flapping_link_failures_within_the_gap_are_one() -> None:
    apart = [Failure(0, 1, "a", "x"), Failure(3, 4, "a"), Failure(4.5, 9, "b"), Failure(7, 8, "a")]
    assert merged(apart, 2) == (
        Failure(0, 4, "a", "x", 2), Failure(4.5, 9, "b"), Failure(7, 8, "a"),
    )  # fmt: skip
    assert merged(apart, 3)[0] == Failure(0, 8, "a", "x", 3)
    assert merged([Failure(0, None, "a"), Failure(5, 6, "a")], 0) == (Failure(0, None, "a", "", 2),)


def test_failures_in_test_periods_are_left_out_and_so_is_their_time() -> None:
    tests = [Period(10, 20), Period(15, 30), Period(50, 60)]
    begins = (5, 10, 19, 29.9, 30, 55, 60)
    assert [f.begin_s for f in outside([Failure(at, at + 1, "a") for at in begins], tests)] == [
        5, 30, 60,
    ]  # fmt: skip
    assert joined(tests) == [Period(10, 30), Period(50, 60)]
    assert [time_without(at, joined(tests)) for at in (5, 10, 20, 30, 55, 70)] == [
        5,
        10,
        10,
        10,
        30,
        40,
    ]

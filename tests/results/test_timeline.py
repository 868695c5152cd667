"""Nodes that a node waits for in a barrier, and its wait apart from the release."""

from daqloom.results.timeline import Span, Stage, Waits, barrier_waits, spans
from daqloom.scenario.schema.building import Building

ONE_GROUP: list[int] = []
TWO_GROUPS = [0, 0, 1, 1, 1]


def building(**keys: object) -> Building:
    return Building.model_validate({"protocol": "shift", **keys})


def whom(groups: list[int], nodes: list[int], **keys: object) -> list[set[int]]:
    found = barrier_waits(building(**keys), groups, nodes).whom
    return [set(found[node]) for node in nodes]


def test_a_node_waits_for_those_of_its_group_that_are_left_within_the_slack() -> None:
    assert whom(ONE_GROUP, [0, 1, 2]) == [{0, 1, 2}] * 3
    assert whom(TWO_GROUPS, [0, 1, 2, 3, 4]) == [{0, 1}] * 2 + [{2, 3, 4}] * 3
    assert whom(TWO_GROUPS, [0, 2, 4]) == [{0}, {2, 4}, {2, 4}]
    assert barrier_waits(building(), ONE_GROUP, [0]).slack == 0
    assert barrier_waits(building(barrier_slack=2, phases_per_barrier=3), [], [0]).slack == 6


def test_of_neighbours_a_node_waits_for_the_next_one_and_in_order_only_the_last_does() -> None:
    of_neighbours = {"barrier": "neighbour", "barrier_group": 3}
    assert whom(TWO_GROUPS, [0, 1, 2, 3, 4], **of_neighbours) == [
        {0, 1}, {1, 0}, {2, 3}, {3, 4}, {4, 2},
    ]  # fmt: skip
    assert whom(TWO_GROUPS, [2, 4], **of_neighbours) == [{2, 4}, {4, 2}]
    in_order = {"barrier": "neighbour", "pace": "builder"}
    assert whom(ONE_GROUP, [0, 1, 2], **in_order) == [{0}, {1}, {2, 0}]
    assert whom(ONE_GROUP, [0, 1, 2], **in_order, writers=2) == [{0, 1}, {1, 2}, {2, 0}]


def waited(stages: list[Stage], waits: Waits) -> list[Span]:
    nodes = {node for _, _, node, _ in stages}
    found = spans(stages, 10.0, nodes, lambda node, step: node, waits)
    return [span for span in found if span.what in ("waiting", "releasing")]


def test_each_group_waits_for_its_own_last_one() -> None:
    entered = [(1.0, 0), (2.0, 1), (3.0, 2), (6.0, 3)]
    released = {0: 2.5, 1: 2.5, 2: 6.5, 3: 6.5}
    stages = [(at, 0, node, "in_barrier") for at, node in entered]
    stages += [(at, 1, node, "entering") for node, at in released.items()]
    found = waited(sorted(stages), barrier_waits(building(), [0, 0, 1, 1], range(4)))
    assert sorted(found) == sorted([
        Span(0, 0, "waiting", 0, 1, 2), Span(0, 0, "releasing", 0, 2, 2.5),
        Span(1, 0, "waiting", 1, 2, 2), Span(1, 0, "releasing", 1, 2, 2.5),
        Span(2, 0, "waiting", 2, 3, 6), Span(2, 0, "releasing", 2, 6, 6.5),
        Span(3, 0, "waiting", 3, 6, 6), Span(3, 0, "releasing", 3, 6, 6.5),
    ])  # fmt: skip


def test_with_slack_a_node_waits_for_an_earlier_barrier() -> None:
    stages: list[Stage] = [
        (1.0, 0, 0, "in_barrier"), (1.0, 1, 0, "entering"),  # nothing is awaited
        (2.0, 1, 0, "in_barrier"), (5.5, 2, 0, "entering"),  # the other one was there at 5
        (5.0, 0, 1, "in_barrier"), (5.0, 1, 1, "entering"),
    ]  # fmt: skip
    found = waited(sorted(stages), barrier_waits(building(barrier_slack=1), [], range(2)))
    assert [span for span in found if span.node == 0] == [
        Span(0, 0, "waiting", 0, 1, 1), Span(0, 0, "releasing", 0, 1, 1),
        Span(0, 1, "waiting", 0, 2, 5), Span(0, 1, "releasing", 0, 5, 5.5),
    ]  # fmt: skip


def test_a_node_that_never_arrives_extends_the_wait_to_its_end() -> None:
    stages = [(1.0, 0, 0, "in_barrier"), (0.0, 0, 1, "sending")]
    found = waited(sorted(stages), barrier_waits(building(), [], range(2)))
    assert found == [Span(0, 0, "waiting", 0, 1, 10), Span(0, 0, "releasing", 0, 10, 10)]

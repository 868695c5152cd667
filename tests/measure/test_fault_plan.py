"""What a measurement breaks and when, without processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.machine.namespaces import FRAME_BITS, Link, frame_loss
from daqloom.measure.fault_plan import Condition, Planned, agenda, condition, planned
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.system.scenarios import load

APART = {"measure.namespaces": True, "measure.transport": "libfabric:tcp"}


def laptop(apart: bool = False, seed: int = 1, **faults: dict[str, object]) -> Scenario:
    """Four folded nodes on leaf00."""
    keys = {
        f"faults.injected.{name}.{key}": value
        for name, fault in faults.items()
        for key, value in fault.items()
    }
    return load("laptop", {"faults.seed": seed, **keys, **(APART if apart else {})})


def units(plan: list[Planned]) -> list[int]:
    return [unit for each in plan for unit in each.thing.units]


KILL = {"what": "unit", "at": "2 s"}
STOP = {"what": "unit", "how": "stopped", "which": 1, "at": "1 s", "lasts": "3 s"}


def test_what_flaps_breaks_every_period() -> None:
    flap = {**STOP, "lasts": "500 ms", "repeats": 3, "period": "2 s"}
    told = [(each.time_s, each.begins) for each in agenda(planned(laptop(flap=flap)))]
    assert told == [(1.0, True), (1.5, False), (3.0, True), (3.5, False), (5.0, True), (5.5, False)]


def test_what_is_not_mended_has_no_end() -> None:
    (kill,) = agenda(planned(laptop(kill={**KILL, "which": 2})))
    assert (kill.time_s, kill.begins, kill.planned.thing.units) == (2.0, True, (2,))


@given(st.integers(0, 2**63 - 1), st.integers(1, 9))
def test_things_are_drawn_by_the_seed_and_none_twice(seed: int, count: int) -> None:
    some = {"what": "unit", "count": count}
    alone, beside = (
        Faults.model_validate({"seed": seed, "injected": {**others, "some": some}})
        for others in ({}, {"another": {"what": "host"}})
    )
    drawn = alone.drawn("some", range(9))
    assert len(set(drawn)) == len(drawn) == count
    assert drawn == beside.drawn("some", range(9))


def test_seeds_and_names_draw_different_things() -> None:
    one = {"what": "unit"}
    drawn = [
        tuple(
            Faults(seed=seed, injected={"a": one, "b": one}).drawn(name, range(4)) for name in "ab"
        )
        for seed in range(100)
    ]
    assert len(set(map(str, drawn))) == 16


def test_what_is_drawn_is_what_breaks() -> None:
    scenario = laptop(seed=5, some={**KILL, "count": 3})
    assert set(units(planned(scenario))) == set(scenario.faults.drawn("some", range(4)))


def test_units_have_numbers_and_hosts_have_names() -> None:
    (unit,) = planned(laptop(a={**KILL, "which": 2}))
    (host,) = planned(laptop(a={"what": "host", "which": "H00-02"}))
    assert (unit.thing.which, host.thing.which) == ("2", "H00-02")
    assert unit.thing.units == host.thing.units == (2,)
    (drawn,) = planned(laptop(a={"what": "host"}))
    assert drawn.thing.which == f"H00-0{drawn.thing.units[0]}"


def test_of_overlapping_faults_the_worse_one_counts() -> None:
    plan = planned(
        laptop(
            long={**STOP, "lasts": "8 s"},
            short={**STOP, "at": "2 s"},
            slow={**STOP, "how": "slow", "factor": 2, "at": "3 s", "lasts": "4 s"},
            slower={**STOP, "how": "slow", "factor": 5, "at": "4 s", "lasts": "1 s"},
        )
    )
    broken: list[Planned] = []
    course = []
    for change in agenda(plan):
        (broken.append if change.begins else broken.remove)(change.planned)
        now = condition(broken)
        course.append((change.time_s, now.stopped, now.factor))
    assert course == [
        (1.0, True, 1),
        (2.0, True, 1),
        (3.0, True, 2),
        (4.0, True, 5),
        (5.0, True, 5),  # the short stop is over, the long one is not
        (5.0, True, 2),
        (7.0, True, 1),
        (9.0, False, 1),
    ]
    assert condition([]) == Condition()


def test_a_cable_has_a_name_at_each_end_and_fails_towards_the_one_that_is_given() -> None:
    one_way = {"what": "cable", "how": "one-way", "lasts": "1 s"}
    for which, link in (
        ("H00-02", Link(lost_to_unit=1)),
        ("leaf00 port 3", Link(lost_from_unit=1)),
    ):
        (cable,) = planned(laptop(True, cut={**one_way, "which": which}))
        assert cable.thing.units == (2,)
        assert condition([cable]).link == link


def test_a_switch_takes_the_links_of_its_hosts_with_it() -> None:
    (switch,) = planned(laptop(True, dark={"what": "switch", "which": "leaf00"}))
    assert switch.thing.units == (0, 1, 2, 3)
    assert condition([switch]).link == Link(up=False)


def test_a_bit_error_loses_a_frame() -> None:
    assert frame_loss(1e-9) == pytest.approx(1e-9 * FRAME_BITS, rel=1e-4)
    assert frame_loss(0.0) == 0
    bad = {"what": "cable", "how": "degraded", "rate": "1 Gb/s", "bit_error_rate": 1e-9}
    (cable,) = planned(laptop(True, bad={**bad, "which": "H00-00"}))
    lost = frame_loss(1e-9)
    assert condition([cable]).link == Link(
        lost_to_unit=lost, lost_from_unit=lost, rate_bps=1_000_000_000
    )


@pytest.mark.parametrize(
    ("apart", "fault", "sentence"),
    [
        (False, {"what": "card"}, "cannot be measured: nothing makes a live source hold back"),
        (False, {"what": "cable"}, "share the network of their machine; give each a link of its"),
        (False, {"what": "switch"}, "measure.namespaces = true"),
        (False, {"what": "unit", "which": 4}, 'which = "4" is no unit of the system'),
        (False, {"what": "host", "which": "leaf00"}, "is no host of the system"),
        (False, {"what": "unit", "count": 5}, "count = 5, and there are 4 to be drawn from"),
        (True, {"what": "cable", "which": "leaf00 port 9"}, "is no cable of the system"),
        (True, {"what": "switch", "which": "spine00"}, "switch spine00 has no units, and those"),
        (True, {"what": "cable"}, 'set which to one at a host such as "H00-00"'),
        (
            True,
            {"what": "cable", "how": "degraded", "bit_error_rate": 1e-9, "link_retry": "1 us"},
            "link_retry exists only in simulation; leave it out",
        ),
    ],
)
def test_what_a_measurement_cannot_break_is_told_in_a_sentence(apart, fault, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        planned(laptop(apart, one=fault))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"measure.transport": "shm"}, 'requires transport = "tcp" or "libfabric:tcp" and launch'),
        ({"measure.network": "10.0.0.0/8"}, "leaves no use for network and prometheus_port"),
    ],
)
def test_namespaces_need_what_they_need(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        load("laptop", {**APART, **change})

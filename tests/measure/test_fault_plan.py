"""Outages of a measurement, without processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load
from daqloom.machine.namespaces import FRAME_BITS, Link, frame_loss
from daqloom.measure.fault_plan import Condition, UnitOutage, agenda, condition, unit_outages
from daqloom.scenario import ScenarioError
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.models import Scenario

APART = {"measure.namespaces": True, "measure.transport": "libfabric:tcp"}


def laptop(apart: bool = False, seed: int = 1, **faults: dict[str, object]) -> Scenario:
    """Four folded nodes on leaf00."""
    keys = {
        f"faults.injected.{name}.{key}": value
        for name, fault in faults.items()
        for key, value in fault.items()
    }
    return load("laptop", {"faults.seed": seed, **keys, **(APART if apart else {})})


KILL = {"what": "unit", "at": "2 s"}
STOP = {"what": "unit", "how": "stopped", "which": 1, "at": "1 s", "lasts": "3 s"}


def test_a_flapping_fault_breaks_every_period() -> None:
    flap = {**STOP, "lasts": "500 ms", "repeats": 3, "period": "2 s"}
    changes = [change[:2] for change in agenda(unit_outages(laptop(flap=flap)))]
    assert changes == [(at_s + end, not end) for at_s in (1.0, 3.0, 5.0) for end in (0, 0.5)]


def test_an_unmended_fault_has_no_end() -> None:
    ((at_s, begins, kill),) = agenda(unit_outages(laptop(kill={**KILL, "which": 2})))
    assert (at_s, begins, kill.units) == (2.0, True, (2,))


@given(st.integers(0, 2**63 - 1), st.integers(1, 9))
def test_things_are_drawn_by_the_seed_and_none_twice(seed: int, count: int) -> None:
    some = {"what": "unit", "count": count}
    alone, with_another = (
        Faults.model_validate({"seed": seed, "injected": {**others, "some": some}})
        for others in ({}, {"another": {"what": "host"}})
    )
    drawn = alone.draw("some", range(9))
    assert len(set(drawn)) == len(drawn) == count
    assert drawn == with_another.draw("some", range(9))


def test_seeds_and_names_draw_different_things() -> None:
    one = {"what": "unit"}
    drawn = [
        tuple(
            Faults(seed=seed, injected={"a": one, "b": one}).draw(name, range(4)) for name in "ab"
        )
        for seed in range(100)
    ]
    assert len(set(map(str, drawn))) == 16


def test_the_drawn_things_are_those_that_break() -> None:
    scenario = laptop(seed=5, some={**KILL, "count": 3})
    units = [unit for each in unit_outages(scenario) for unit in each.units]
    assert sorted(units) == sorted(scenario.faults.draw("some", range(4)))


def test_units_have_numbers_and_hosts_have_names() -> None:
    for fault, which in (
        ({**KILL, "which": 2}, "2"),
        ({"what": "host", "which": "H00-02"}, "H00-02"),
    ):
        (outage,) = unit_outages(laptop(a=fault))
        assert (outage.outage.which, outage.units) == (which, (2,))
    (drawn,) = unit_outages(laptop(a={"what": "host"}))
    assert drawn.outage.which == f"H00-0{drawn.units[0]}"


def test_the_worse_of_overlapping_faults_counts() -> None:
    outages = unit_outages(
        laptop(
            long={**STOP, "lasts": "8 s"},
            short={**STOP, "at": "2 s"},
            slow={**STOP, "how": "slow", "factor": 2, "at": "3 s", "lasts": "4 s"},
            slower={**STOP, "how": "slow", "factor": 5, "at": "4 s", "lasts": "1 s"},
        )
    )
    present: list[UnitOutage] = []
    course = []
    for at_s, begins, outage in agenda(outages):
        (present.append if begins else present.remove)(outage)
        now = condition(present)
        course.append((at_s, now.stopped, now.factor))
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


ONE_WAY = {"what": "cable", "how": "one-way", "lasts": "1 s"}
BAD = {"what": "cable", "how": "degraded", "rate": "1 Gb/s", "bit_error_rate": 1e-9}
LOST = frame_loss(1e-9)


@pytest.mark.parametrize(
    ("fault", "which", "units", "link"),
    [
        # A cable has a name at each end, and fails towards that end.
        (ONE_WAY, "H00-02", (2,), Link(lost_to_unit=1)),
        (ONE_WAY, "leaf00 port 3", (2,), Link(lost_from_unit=1)),
        ({"what": "switch"}, "leaf00", (0, 1, 2, 3), Link(up=False)),
        (BAD, "H00-00", (0,), Link(lost_to_unit=LOST, lost_from_unit=LOST, rate_bps=10**9)),
    ],
)
def test_a_fault_of_links_changes_those_of_units(fault, which, units, link) -> None:
    (outage,) = unit_outages(laptop(True, one={**fault, "which": which}))
    assert (outage.units, condition([outage]).link) == (units, link)


def test_a_bit_error_loses_a_frame() -> None:
    assert frame_loss(1e-9) == pytest.approx(1e-9 * FRAME_BITS, rel=1e-4)
    assert frame_loss(0.0) == 0


@pytest.mark.parametrize(
    ("apart", "fault", "sentence"),
    [
        (
            False,
            {"what": "card"},
            "cannot be measured: a measured card has random acknowledgements",
        ),
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
def test_faults_that_cannot_be_measured_are_refused(apart, fault, sentence) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        unit_outages(laptop(apart, one=fault))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"measure.transport": "shm"}, 'requires transport = "tcp" or "libfabric:tcp" and launch'),
        ({"measure.network": "10.0.0.0/8"}, "leaves no use for network and prometheus_port"),
    ],
)
def test_keys_that_namespaces_exclude_are_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError, match=sentence):
        load("laptop", {**APART, **change})
